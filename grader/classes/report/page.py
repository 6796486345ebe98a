"""A class's submissions and their results, as one page of HTML. Pure.

The entries are asked for three times and never kept, so that a class of any size can be written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, median

from grader.classes.folder.types import LedgerEntry
from grader.classes.report.look import bar, cell, histogram, page, table, text, verbatim
from grader.classes.report.similar import similar_section
from grader.classes.report.types import Similar, Unexplained
from grader.show.html import inline_html, titles_html
from grader.show.scoreboard import standing
from grader.show.screen import amount, count
from grader.types.course import Assignment
from grader.types.report import Cause, Kind, Outcome, Report, StageResult, Status
from grader.types.text import safe

Entries = Callable[[], Iterable[LedgerEntry]]

_NAME = 60  # letters of a name in a table
_LONG_NAME = 300  # and at the top of the student's page
_NAMED = 5  # students that are named with a misconception
_LISTED = 200  # in a list of students
_CHECKS = 15  # that fail most; the others can be opened

_SIGNS = {
    Status.PASSED: "✓",
    Status.FAILED: "✗",
    Status.NOT_STARTED: "·",
    Status.ERROR: "!",
}
_WAITING, _NOTHING = "↑", "–"
_NO_CELL = f'<td data-v="">{_NOTHING}</td>'  # comes last, however its column is sorted
_LEGEND = (
    "✓ passed, ✗ failed, ↑ failed only because of an earlier stage, · not started, "
    "! the grader itself failed, – not graded. A stronger colour only repeats more points."
)
_TO_SIMILAR = '<li><a href="#similar">Similar answers</a></li>'
_BY_HAND = "The grader itself failed here: give these points by hand."


def class_report(
    title: str,
    assignment: Assignment,
    entries: Entries,
    unexplained: Sequence[Unexplained] = (),
    similar: Similar | None = None,
    *,
    anonymous: bool = False,
) -> Iterator[str]:
    """The page, piece by piece: the class, then a section for each student.

    `entries` returns the verdicts, in the same order at every call. With `anonymous` the page shows
    numbers in that order instead of names, and leaves `similar` answers out.
    """
    body = _body(title, assignment, entries, unexplained, similar, anonymous)
    return page(f"{assignment.name}: {title}", body)


def _body(
    title: str,
    assignment: Assignment,
    entries: Entries,
    unexplained: Sequence[Unexplained],
    similar: Similar | None,
    anonymous: bool,
) -> Iterator[str]:
    def people() -> Iterator[_Person]:
        for number, entry in enumerate(entries(), start=1):
            yield _Person(number, entry, anonymous)

    named = {name for one in similar.alike for name in one.students} if similar else set()
    named.update(name for one in unexplained for name in one.students[:_NAMED])
    tally = _tally(people(), named)
    yield (
        f"<header><h1>{text(title)}</h1><p>{text(assignment.name)}: "
        f"{count(tally.students, 'student')}</p></header>\n"
        '<main><div class="class" id="class">\n<nav aria-label="On this page"><ul>'
        '<li><a href="#students">Students and stages</a></li>'
        '<li><a href="#checks">Checks that fail most</a></li>'
        '<li><a href="#misconceptions">Misconceptions</a></li>'
        '<li><a href="#unexplained">Other failures</a></li>'
        f"{'' if anonymous else _TO_SIMILAR}"
        '<li><a href="#notes">Notes</a></li></ul></nav>\n'
    )
    yield from _summary(tally, assignment)
    yield from _heatmap(people(), assignment, anonymous)
    yield from _checks(tally)
    yield from _misconceptions(tally)
    titles = {stage.slug: stage.title for stage in assignment.stages}
    yield from _unexplained(unexplained, titles, tally, anonymous)
    if not anonymous:
        yield from similar_section(similar, titles, lambda name: tally.links.get(name, ""))
    yield from _notes(tally)
    yield "</div>\n"
    for person in people():
        yield from _student(person, tally.students)
    yield "</main>\n<footer></footer>\n"


# --- who ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Person:
    """A student's verdict, place in the class, and name on the page."""

    number: int
    entry: LedgerEntry
    anonymous: bool

    @property
    def name(self) -> str:
        return f"Student {self.number}" if self.anonymous else self.entry.student

    @property
    def report(self) -> Report | None:
        """The report; None if there was nothing to grade or the grader failed."""
        return None if self.entry.is_refused else self.entry.report

    @property
    def link(self) -> str:
        return f'<a href="#s{self.number}"><bdi>{text(self.name, _NAME)}</bdi></a>'

    def hidden(self, words: str) -> str:
        """The words; on an anonymous page without the student's name, which files may contain."""
        return _without(self.entry.student, self.name, words) if self.anonymous else words


def _without(student: str, instead: str, words: str) -> str:
    """The words with something else instead of a student's name."""
    return re.sub(rf"(?<!\w){re.escape(student)}(?!\w)", lambda found: instead, words)


# --- what is counted ---------------------------------------------------------------------------


@dataclass
class _StageTally:
    passed: int = 0
    failed: int = 0
    waiting: int = 0
    not_started: int = 0
    points: float = 0.0

    @property
    def known(self) -> int:
        """How many submissions the stage's own checks have decided."""
        return self.passed + self.failed


@dataclass
class _Held:
    """A misconception or a failing check: how many students have it, and the first of them."""

    stage: StageResult
    words: str
    students: int = 0
    first: list[str] = field(default_factory=list)


@dataclass
class _Listed:
    """Students with a few words about each."""

    students: int = 0
    lines: list[str] = field(default_factory=list)

    def add(self, person: _Person, words: Iterable[str]) -> None:
        self.students += 1
        if len(self.lines) < _LISTED:
            about = text(person.hidden(" ".join(words)), _LONG_NAME)
            self.lines.append(f"<li>{person.link}{': ' if about else ''}{about}</li>")


@dataclass
class _Tally:
    students: int = 0
    most: float = 0.0
    scores: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    longest: float = 0.0
    slowest: str = ""
    copies: int = 0
    stages: dict[str, _StageTally] = field(default_factory=dict)
    checks: dict[tuple[str, str], _Held] = field(default_factory=dict)
    misconceptions: dict[tuple[str, str], _Held] = field(default_factory=dict)
    unlocked: set[str] = field(default_factory=set)
    unread: _Listed = field(default_factory=_Listed)
    by_hand: _Listed = field(default_factory=_Listed)
    odd: _Listed = field(default_factory=_Listed)
    links: dict[str, str] = field(default_factory=dict)


def _tally(people: Iterable[_Person], named: set[str]) -> _Tally:
    """Count everything that the page shows, and collect the links to the students `named`."""
    tally = _Tally()
    for person in people:
        if person.entry.student in named:
            tally.links[person.entry.student] = person.link
        entry, report = person.entry, person.report
        tally.students += 1
        if report is None:
            (tally.by_hand if entry.is_lost else tally.unread).add(person, entry.record.notes)
            continue
        tally.scores.append(report.score)
        tally.most = max(tally.most, report.max_score)
        if entry.seconds > tally.longest:
            tally.longest, tally.slowest = entry.seconds, person.link
        if entry.seconds:
            tally.seconds.append(entry.seconds)
        else:
            tally.copies += 1
        tally.unlocked.update(report.unlocked)
        if entry.record.notes:
            tally.odd.add(person, entry.record.notes)
        if any(stage.status is Status.ERROR for stage in report.stages):
            failed = [stage.title for stage in report.stages if stage.status is Status.ERROR]
            tally.by_hand.add(person, [", ".join(failed)])
        for stage in report.stages:
            _count(tally, person, stage)
    return tally


def _count(tally: _Tally, person: _Person, stage: StageResult) -> None:
    counts = tally.stages.setdefault(stage.slug, _StageTally())
    counts.points += stage.score
    if stage.caused_by is not None:
        counts.waiting += 1
    elif stage.status is Status.PASSED:
        counts.passed += 1
    elif stage.status is Status.NOT_STARTED:
        counts.not_started += 1
    elif stage.status is Status.FAILED:
        counts.failed += 1
        found: dict[tuple[str, str], _Held] = {}
        for check in stage.checks:
            if check.outcome in (Outcome.FAILED, Outcome.TIMEOUT):
                key = (stage.slug, check.id)
                held = tally.checks.setdefault(key, _Held(stage, check.title))
                held.students += 1
            diagnosis = check.diagnosis if check.outcome is Outcome.FAILED else None
            if diagnosis is not None and diagnosis.kind is Kind.NAME:
                key, words = (stage.slug, diagnosis.id), diagnosis.text
                found[key] = tally.misconceptions.setdefault(key, _Held(stage, words))
        for held in found.values():
            held.students += 1
            if len(held.first) < _NAMED:
                held.first.append(person.link)


# --- the class ---------------------------------------------------------------------------------


def _summary(tally: _Tally, assignment: Assignment) -> Iterator[str]:
    yield '<section aria-labelledby="summary"><h2 id="summary">Summary</h2>\n'
    if tally.scores:
        yield (
            f"<p>{count(len(tally.scores), 'submission')} graded. Of {amount(tally.most)} points: "
            f"<strong>median {amount(median(tally.scores))}</strong>, mean "
            f"{amount(mean(tally.scores))}, from {amount(min(tally.scores))} to "
            f"{amount(max(tally.scores))}.</p>\n"
        )
    for listed, words in (
        (tally.unread, "could not be read"),
        (tally.by_hand, "with points to set by hand"),
    ):
        if listed.students:
            yield f'<p><a href="#notes">{count(listed.students, "submission")} {words}.</a></p>\n'
    if tally.seconds:
        copies = count(tally.copies, "submission")
        same = f" {copies} identical to another took no time." if tally.copies else ""
        yield (
            f"<p>Grading took {_span(sum(tally.seconds))} in total: median "
            f"{_span(median(tally.seconds))}, longest {_span(tally.longest)} "
            f"({tally.slowest}).{same}</p>\n"
        )
    if tally.scores:
        yield histogram(
            tally.scores, tally.most, "Students by their points", "from 0 to all points, in tenths"
        )
    yield from table(
        "by-stage",
        "The class in each stage",
        ["Stage", "Points, mean", "✓ Passed", "✗ Failed", "↑ Earlier stage", "· Not started"],
        (_stage_row(tally, stage.slug, stage.title, stage.points) for stage in assignment.stages),
    )
    yield "</section>\n"


def _stage_row(tally: _Tally, slug: str, title: str, points: float) -> str:
    counts = tally.stages.get(slug, _StageTally())
    average = counts.points / max(len(tally.scores), 1)
    numbers = (counts.passed, counts.failed, counts.waiting, counts.not_started)
    share = average / points if points else 0.0
    return (
        f'<tr><th scope="row">{text(title)}</th>'
        + cell(f"{bar(share)} {amount(average)} of {amount(points)}", average)
        + "".join(cell(str(number), number) for number in numbers)
        + "</tr>\n"
    )


def _heatmap(people: Iterable[_Person], assignment: Assignment, anonymous: bool) -> Iterator[str]:
    stages = assignment.stages
    by = "number" if anonymous else "name"
    most = sum(stage.points for stage in stages if not stage.bonus)
    columns = ["Student", f"Points of {amount(most)}"]
    columns += [f"{text(stage.title)} ({amount(stage.points)})" for stage in stages]
    slugs = [stage.slug for stage in stages]
    yield '<section aria-labelledby="students"><h2 id="students">Students and stages</h2>\n'
    yield f"<p>{_LEGEND} A {by} leads to the student's page.</p>\n"
    rows = (_student_row(person, slugs) for person in people)
    yield from table(
        "heat", f"Points, by {by}", [*columns, "Seconds"], rows, sorted_by=0, style="heat tall"
    )
    yield "</section>\n"


def _student_row(person: _Person, slugs: Sequence[str]) -> str:
    entry, report = person.entry, person.report
    parts = [f'<tr><th scope="row">{person.link}</th>']
    if report is None:
        words = "by hand" if entry.is_lost else "unreadable"
        parts.append(cell(f"{_NOTHING} {words}", -1 if entry.is_lost else 0))
        parts.append(_NO_CELL * (len(slugs) + 1))
    else:
        bonus = f" + {amount(report.bonus)}" if report.bonus else ""
        parts.append(cell(f"{amount(report.score)}{bonus}", report.score + report.bonus))
        by_slug = {stage.slug: stage for stage in report.stages}
        parts.extend(_stage_cell(by_slug.get(slug)) for slug in slugs)
        parts.append(cell(f"{entry.seconds:.1f}", entry.seconds))
    return "".join(parts) + "</tr>\n"


def _stage_cell(stage: StageResult | None) -> str:
    if stage is None:
        return _NO_CELL
    share = stage.score / stage.max_score if stage.max_score else 0.0
    shade = sum(share >= least for least in (0.01, 0.5, 0.8, 1))
    points = amount(stage.score)
    label = f"{_standing(stage)}, {points}"
    return cell(f"{_sign(stage)} {points}", stage.score, style=f"f{shade}", label=label)


def _checks(tally: _Tally) -> Iterator[str]:
    yield '<section aria-labelledby="checks"><h2 id="checks">Checks that fail most</h2>\n'
    if not tally.checks:
        yield "<p>No check fails.</p></section>\n"
        return
    yield (
        "<p>Counts the students who have started the stage. Failures that an earlier stage caused "
        "are not counted.</p>\n"
    )
    held = sorted(tally.checks.values(), key=lambda one: -one.students)

    def rows(some: Iterable[_Held]) -> Iterator[str]:
        for one in some:
            of = tally.stages[one.stage.slug].known
            yield (
                f'<tr><th scope="row">{inline_html(one.words)}</th>'
                f"<td>{text(one.stage.title)}</td>"
                + cell(f"{bar(one.students / of)} {one.students} of {of}", one.students)
                + "</tr>\n"
            )

    columns = ["Check", "Stage", "Failed by"]
    yield from table("failing", "Most frequent first", columns, rows(held[:_CHECKS]))
    if held[_CHECKS:]:
        yield f"<details><summary>{count(len(held) - _CHECKS, 'more check')}</summary>"
        yield from table(
            "failing-too", "Checks that fail less often", columns, rows(held[_CHECKS:])
        )
        yield "</details>"
    yield "</section>\n"


def _misconceptions(tally: _Tally) -> Iterator[str]:
    yield (
        '<section aria-labelledby="misconceptions"><h2 id="misconceptions">Misconceptions</h2>\n'
    )
    if not tally.misconceptions:
        yield "<p>No answer behaves like a known mistake.</p></section>\n"
        return
    yield "<p>Known mistakes that give exactly the students' results.</p>\n"

    def rows() -> Iterator[str]:
        for one in sorted(tally.misconceptions.values(), key=lambda one: -one.students):
            shared = _shared(tally, one.first, one.students)
            yield (
                f'<tr><th scope="row">{inline_html(one.words)}</th>'
                f"<td>{text(one.stage.title)}</td>{shared}</tr>\n"
            )

    columns = ["What the feedback says", "Stage", "Students", "Who"]
    yield from table("held", "Most common first", columns, rows())
    yield "</section>\n"


def _shared(tally: _Tally, first: Sequence[str], students: int) -> str:
    """How many students have something in common, and links to the first of them."""
    more = students - len(first)
    who = ", ".join(first) + (f" and {more} more" if more else "")
    share = students / max(len(tally.scores), 1)
    return cell(f"{bar(share)} {students}", students) + f"<td>{who}</td>"


def _unexplained(
    failures: Sequence[Unexplained], titles: Mapping[str, str], tally: _Tally, anonymous: bool
) -> Iterator[str]:
    yield '<section aria-labelledby="unexplained"><h2 id="unexplained">Other failures</h2>\n'
    if not failures:
        yield "<p>No other failure.</p></section>\n"
        return
    yield (
        "<p>No known mistake explains them. For the most common ones, the last column shows where "
        "one answer goes wrong.</p>\n"
    )

    def rows() -> Iterator[str]:
        for one in failures:
            names = [name for name in one.students[:_NAMED] if name in tally.links]
            shared = _shared(tally, [tally.links[name] for name in names], len(one.students))
            example = one.example
            if anonymous:
                example = _without(one.students[0], "a student", example)
            yield (
                f'<tr><th scope="row">{inline_html(one.says)}</th>'
                f"<td>{text(titles.get(one.stage, one.stage))}</td>{shared}"
                f"<td>{_place(example) if example else _NOTHING}</td></tr>\n"
            )

    columns = ["What the feedback says", "Stage", "Students", "Who", "In one answer"]
    yield from table("unnamed", "Most common first", columns, rows())
    yield "</section>\n"


def _notes(tally: _Tally) -> Iterator[str]:
    yield '<section aria-labelledby="notes"><h2 id="notes">Notes</h2>\n'
    for note in sorted(tally.unlocked):
        yield f"<p>{text(note[:1].upper() + note[1:])}.</p>\n"
    listed = (
        (tally.by_hand, "Set these points by hand: the grader itself failed"),
        (tally.unread, "Unreadable, so there was nothing to grade"),
        (tally.odd, "Graded, but something was unusual"),
    )
    for one, words in listed:
        if one.students:
            yield f"<h3>{words} ({one.students})</h3>\n<ul>{''.join(one.lines)}</ul>\n"
            if one.students > len(one.lines):
                yield f"<p>And {one.students - len(one.lines)} more: see their pages.</p>\n"
    if not tally.unlocked and not any(one.students for one, _ in listed):
        yield "<p>Nothing unusual.</p>\n"
    yield "</section>\n"


# --- a student ---------------------------------------------------------------------------------


def _student(person: _Person, students: int) -> Iterator[str]:
    number, entry, report = person.number, person.entry, person.report
    ways = ['<a href="#class">The class</a>']
    if number > 1:
        ways.append(f'<a href="#s{number - 1}">Previous student</a>')
    if number < students:
        ways.append(f'<a href="#s{number + 1}">Next student</a>')
    yield (
        f'<section class="student" id="s{number}" aria-labelledby="n{number}" tabindex="-1">'
        f'<p class="back">{" · ".join(ways)}</p>'
        f'<h2 id="n{number}"><bdi>{text(person.name, _LONG_NAME)}</bdi></h2>\n'
    )
    yield from _facts(person)
    notes = [*entry.record.notes]
    if report is not None:
        notes += [note for note in report.notes if note != f"seed {entry.seed}"]
    if notes:
        items = "".join(f"<li>{text(person.hidden(note), 2000)}</li>" for note in notes)
        yield f"<h3>Notes</h3><ul>{items}</ul>"
    if report is not None:
        yield _scoreboard(report)
        for stage in report.stages:
            yield from _stage(person, report, stage)
    yield "</section>\n"


def _facts(person: _Person) -> Iterator[str]:
    entry, report = person.entry, person.report
    if report is not None:
        bonus = f" and {amount(report.bonus)} bonus" if report.bonus else ""
        points = f"<strong>{amount(report.score)}</strong> of {amount(report.max_score)}{bonus}"
    elif entry.is_lost:
        points = "by hand: the grader itself failed"
    else:
        points = "0: there was nothing to grade"
    facts = {"Points": points}
    if not person.anonymous:  # the times are nearly in the order of the names
        where = f", on {text(entry.device)}, in {entry.seconds:.2f} s" if entry.device else ""
        facts |= {
            "Graded": text(_moment(entry.when)) + where,
            "Seed": str(entry.seed),
            "Engine": f"<code>{text(entry.version.engine)}</code>",
        }
        if entry.record.content:
            facts["Submission"] = f"<code>{text(entry.record.content)}</code>"
        name = entry.student
        if report is not None and safe(name) == name and len(name) < _NAME:
            words = f"grade class --out DIR --why={shlex.quote(name)}"
            facts["To replay it"] = f"<code>{text(words)}</code>"
    yield "<dl>"
    for what, shown in facts.items():
        yield f"<dt>{what}</dt><dd>{shown}</dd>"
    yield "</dl>\n"


def _scoreboard(report: Report) -> str:
    rows = "".join(
        f'<tr><td>{_sign(stage)}</td><th scope="row">{text(stage.title)}</th>'
        f"<td>{_points(stage)}</td><td>{_standing(stage)}</td></tr>\n"
        for stage in report.stages
    )
    return (
        '<div class="box" tabindex="0"><table><caption>Each stage</caption><thead><tr>'
        '<td></td><th scope="col">Stage</th><th scope="col">Points</th><th scope="col">Standing'
        f"</th></tr></thead><tbody>{rows}</tbody></table></div>\n"
    )


def _stage(person: _Person, report: Report, stage: StageResult) -> Iterator[str]:
    """Why a stage lacks points, and what its code printed."""
    causes = stage.causes if stage.status is not Status.NOT_STARTED else ()
    if not causes and not stage.printed.strip():
        return
    yield f'<div class="stage"><h3>{_sign(stage)} {text(stage.title)}: {_standing(stage)}</h3>'
    if stage.caused_by is not None:
        titles = {other.slug: other.title for other in report.stages}
        earlier = text(titles.get(stage.caused_by, stage.caused_by))
        yield f"<p>It fails only because it uses {earlier}, which is not right yet.</p>"
    yield '<div class="reasons">'
    for cause in causes:
        yield _cause(person, cause)
    yield "</div>"
    if stage.printed.strip():
        printed = verbatim(person.hidden(stage.printed))
        yield f"<details><summary>The code printed</summary>{printed}</details>"
    yield "</div>\n"


def _cause(person: _Person, cause: Cause) -> str:
    """The checks that fail because of one mistake, and the message of one of them."""
    parts = [f'<div class="reason"><p>{titles_html(cause)}</p>']
    check = cause.show
    if check.outcome is Outcome.ERROR:
        parts.append(f"<p>{_BY_HAND}</p>")
    elif check.outcome is Outcome.TIMEOUT:
        parts.append("<p>It ran out of time and was stopped.</p>")
    found = check.diagnosis
    if found is not None:
        opening = f"<strong>{found.opening.strip()}</strong> " if found.opening else ""
        parts.append(f"<p>{opening}{inline_html(found.text)}</p>")
        if found.place:
            parts.append(_place(person.hidden(found.place)))
    if check.message.strip():
        parts.append(verbatim(person.hidden(check.message)))
    return "".join(parts) + "</div>"


def _place(words: str) -> str:
    """Where a mistake is, and below it the code; there no line breaks, as carets point up."""
    where, _, code = words.partition("\n")
    return f"<p>{inline_html(where)}</p>" + (verbatim(code, style="code") if code else "")


# --- small pieces ------------------------------------------------------------------------------


def _sign(stage: StageResult) -> str:
    return _WAITING if stage.caused_by is not None else _SIGNS[stage.status]


def _standing(stage: StageResult) -> str:
    return "failed because of an earlier stage" if stage.caused_by else standing(stage)


def _points(stage: StageResult) -> str:
    bonus = " bonus" if stage.bonus else ""
    return f"{amount(stage.score)} of {amount(stage.max_score)}{bonus}"


def _moment(when: str) -> str:
    """ISO 8601 in UTC as "2026-01-31 12:00:00 UTC"."""
    return when.replace("T", " ").replace("+00:00", " UTC")


def _span(seconds: float) -> str:
    """90.0 as "1 min 30 s"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
