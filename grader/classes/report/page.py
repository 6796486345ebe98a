"""A class's submissions and their results, as one page of HTML. Pure.

The entries are asked for three times and never kept, so that a class of any size can be written.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from types import MappingProxyType

from grader.classes.folder.counted import late_of, spread
from grader.classes.folder.types import LedgerEntry
from grader.classes.report.look import (
    PAGE_END,
    bar,
    cell,
    histogram,
    page_start,
    table,
    text,
    verbatim,
)
from grader.classes.report.moved import Moved
from grader.classes.report.similar import similar_answers
from grader.classes.report.student import (
    LONG_NAME,
    NAME,
    Person,
    about_student,
    place_html,
    standing_of,
    without,
)
from grader.classes.report.tally import NAMED, Held, StageTally, Tally, tally_of
from grader.classes.report.teach import Hints, numbered, teach
from grader.classes.report.types import Similar, Unexplained
from grader.show.html import inline_html, look
from grader.show.screen import amount, count
from grader.types.course import Assignment, core_of
from grader.types.report import StageResult
from grader.types.seed import seeds_named
from grader.types.text import listed as in_words
from grader.types.text import safe

Entries = Callable[[], Iterable[LedgerEntry]]
_EXAMPLE = 8  # lines
_FALLEN = 20  # students
_CHECKS = 15  # that fail most; the others can be opened

_NOTHING = "–"
_NO_CELL = f'<td data-v="">{_NOTHING}</td>'  # comes last, however its column is sorted
_FEEDBACK = ["What the feedback says", "Stage", "Students", "Who", "In one answer", "Hint"]
_LEGEND = (
    "✓ passed, ✗ failed, ↑ failed only because of an earlier stage, · not started, "
    "! the grader itself failed, – not graded. A stronger colour only repeats more points."
)


def class_report(
    title: str,
    assignment: Assignment,
    entries: Entries,
    unexplained: Sequence[Unexplained] = (),
    similar: Similar | None = None,
    *,
    hints: Hints = MappingProxyType({}),
    moved: Moved | None = None,
    skipped: Sequence[str] = (),
    anonymous: bool = False,
    zone: tzinfo | None = None,
) -> Iterator[str]:
    """The page, piece by piece: the class, then a section for each student.

    `entries` returns the verdicts, in the same order at every call. With `anonymous` the page shows
    numbers in that order instead of names, and leaves `similar` answers out.
    `hints` are the headings of each stage's hints, `moved` is what changed since an assignment
    before. `skipped` has a sentence about each file that is no submission; they name students.
    Times are in the `zone`, or in UTC.
    On paper, the class takes one page: the summary and what to teach next.
    """

    def people() -> Iterator[Person]:
        for number, entry in enumerate(entries(), start=1):
            yield Person(number, entry, anonymous, late_of(assignment, entry), zone)

    named = {name for one in similar.alike for name in one.students} if similar else set()
    named.update(name for one in unexplained for name in one.students[:NAMED])
    named.update(name for name, _, _ in moved.fallen) if moved else None
    tally = tally_of(people(), named)
    titles = {stage.slug: stage.title for stage in assignment.stages}
    others = _unexplained(unexplained, titles, tally, hints, anonymous)
    sections = [
        ("summary", "Summary", _summary(tally, assignment, len(skipped))),
        ("teach", "What to teach next", teach(tally, assignment, hints, moved)),
        ("misconceptions", "Misconceptions", _misconceptions(tally, hints)),
        ("unexplained", "Other failures", others),
        ("checks", "Checks that fail most", _checks(tally)),
        ("students", "Students and stages", _heatmap(people(), assignment, anonymous)),
        ("notes", "Notes", _notes(tally, skipped, anonymous)),
    ]
    if moved is not None and moved.fallen:
        sections.insert(2, ("fallen", f"Fell since {text(moved.name)}", _fallen(moved, tally)))
    if not anonymous:
        alike = similar_answers(similar, titles, lambda name: tally.links.get(name, ""))
        sections.insert(-1, ("similar", "Similar answers", alike))
    yield page_start(f"{assignment.name}: {title}")
    yield (
        f"<header><h1>{text(title)}</h1><p>{text(assignment.name)}: "
        f"{count(tally.students, 'student')}</p></header>\n"
        '<main><div class="class" id="class">\n'
    )
    yield from _in_sections(sections)
    yield "</div>\n"
    for person in people():
        yield from _student(person, tally.students)
    yield f"</main>\n<footer></footer>\n{PAGE_END}"


# --- the class ---------------------------------------------------------------------------------


def _in_sections(sections: Sequence[tuple[str, str, Iterable[str]]]) -> Iterator[str]:
    """Links to all sections but the first, then each: its name, its heading and what it holds."""
    links = (f'<li><a href="#{name}">{heading}</a></li>' for name, heading, _ in sections[1:])
    yield f'<nav aria-label="On this page"><ul>{"".join(links)}</ul></nav>\n'
    for name, heading, body in sections:
        yield f'<section aria-labelledby="{name}"><h2 id="{name}">{heading}</h2>\n'
        yield from body
        yield "</section>\n"


def _summary(tally: Tally, assignment: Assignment, skipped: int) -> Iterator[str]:
    if tally.scores:
        known = f", version {text(in_words(sorted(tally.versions)))}" if tally.versions else ""
        unread = tally.unread.students
        left = f", without the {unread} unreadable" if unread else ""
        yield (
            f"<p>{count(tally.students, 'submission')} graded, "
            f"{seeds_named(tally.seeds)}{known}. Of {amount(tally.most)} points{left}: "
            f"{spread(tally.scores)}.</p>\n"
        )
    if tally.late.students:
        number = count(tally.late.students, "submission")
        costs = " The penalty counts in each student's points, but not in the figures here."
        costs = costs if assignment.late else ""
        yield f'<p><a href="#notes">{number} came late.</a>{costs}</p>\n'
    for listed, words in (
        (tally.unread, "could not be read"),
        (tally.by_hand, "with points to set by hand"),
    ):
        if listed.students:
            yield f'<p><a href="#notes">{count(listed.students, "submission")} {words}.</a></p>\n'
    if skipped:
        yield f'<p><a href="#notes">Skipped ({skipped})</a></p>\n'
    if tally.seconds:
        yield f"<p>Grading took {_span(tally.seconds)} in total.</p>\n"
    if tally.scores:
        yield histogram(tally.scores, tally.most)
    yield from table(
        "by-stage",
        "The class in each stage",
        ["Stage", "Points, mean", "✓ Passed", "✗ Failed", "↑ Earlier stage", "· Not started"],
        (_stage_row(tally, stage.slug, stage.title, stage.points) for stage in assignment.stages),
    )


def _stage_row(tally: Tally, slug: str, title: str, points: float) -> str:
    counts = tally.stages.get(slug, StageTally())
    average = counts.points / max(len(tally.scores), 1)
    numbers = (counts.passed, counts.failed, counts.waiting, counts.not_started)
    share = average / points if points else 0.0
    return (
        f'<tr><th scope="row">{text(title)}</th>'
        + cell(f"{bar(share)} {amount(average)} of {amount(points)}", average)
        + "".join(cell(str(number), number) for number in numbers)
        + "</tr>\n"
    )


def _heatmap(people: Iterable[Person], assignment: Assignment, anonymous: bool) -> Iterator[str]:
    stages = assignment.stages
    by = "number" if anonymous else "name"
    most = sum(stage.points for stage in core_of(stages))
    columns = ["Student", f"Points of {amount(most)}"]
    columns += [f"{text(stage.title)} ({amount(stage.points)})" for stage in stages]
    slugs = [stage.slug for stage in stages]
    yield f"<p>{_LEGEND} A {by} leads to the student's page.</p>\n"
    rows = (_student_row(person, slugs) for person in people)
    yield from table(
        "heat", f"Points, by {by}", [*columns, "Seconds"], rows, sorted_by=0, style="heat tall"
    )


def _student_row(person: Person, slugs: Sequence[str]) -> str:
    entry, report = person.entry, person.report
    parts = [f'<tr><th scope="row">{person.link}</th>']
    if report is None:
        words = "by hand" if entry.is_lost else "unreadable"
        parts.append(cell(f"{_NOTHING} {words}", -1 if entry.is_lost else 0))
        parts.append(_NO_CELL * (len(slugs) + 1))
    else:
        had = person.counted
        bonus = f" + {amount(had.bonus_left)}" if had.bonus else ""
        late = f" ({amount(had.penalty)} less: late)" if had.penalty else ""
        parts.append(cell(f"{amount(had.score)}{bonus}{late}", had.score + had.bonus_left))
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
    label = f"{standing_of(stage)}, {points}"
    return cell(f"{look(stage)[0]} {points}", stage.score, style=f"f{shade}", label=label)


def _checks(tally: Tally) -> Iterator[str]:
    if not tally.checks:
        yield "<p>No check fails.</p>\n"
        return
    yield (
        "<p>Counts the students who have started the stage. Failures that an earlier stage caused "
        "are not counted. A check that most of the weakest third by points fail, and few of the "
        "strongest, tells them apart.</p>\n"
    )
    held = sorted(tally.checks.values(), key=lambda one: -one.students)

    def rows(some: Iterable[Held]) -> Iterator[str]:
        for one in some:
            of = tally.stages[one.stage.slug].known
            yield (
                f'<tr><th scope="row">{inline_html(one.words)}</th>'
                f"<td>{text(one.stage.title)}</td>"
                + cell(f"{bar(one.students / of)} {one.students} of {of}", one.students)
                + "".join(
                    _NO_CELL if share is None else cell(f"{share:.0%}", share)
                    for share in tally.thirds(one)
                )
                + "</tr>\n"
            )

    columns = ["Check", "Stage", "Failed by", "Weakest third", "Strongest third"]
    yield from table("failing", "Most frequent first", columns, rows(held[:_CHECKS]))
    if held[_CHECKS:]:
        yield f"<details><summary>{count(len(held) - _CHECKS, 'more check')}</summary>"
        yield from table(
            "failing-too", "Checks that fail less often", columns, rows(held[_CHECKS:])
        )
        yield "</details>"
    if tally.passed_by_all:
        titles = "".join(f"<li>{inline_html(title)}</li>" for title in tally.passed_by_all)
        number = count(len(tally.passed_by_all), "check")
        yield f"<details><summary>{number} that nobody fails</summary><ul>{titles}</ul></details>"


def _misconceptions(tally: Tally, hints: Hints) -> Iterator[str]:
    if not tally.misconceptions:
        yield "<p>No answer behaves like a known mistake.</p>\n"
        return
    yield "<p>Known mistakes that give exactly the students' results.</p>\n"

    def rows() -> Iterator[str]:
        for one in sorted(tally.misconceptions.values(), key=lambda one: -one.students):
            shared = _shared(tally, one.first, one.students)
            hint = numbered(hints, one.stage.slug, one.hint)
            yield _feedback_row(one.words, one.stage.title, shared, "", one.example, hint)

    yield from table("held", "Most common first", _FEEDBACK, rows())


def _feedback_row(says: str, title: str, shared: str, place: str, example: str, hint: str) -> str:
    """A row of a table with the columns `_FEEDBACK`."""
    shown = _NOTHING
    if example:
        shown = f"<details><summary>show</summary>{verbatim(example, _EXAMPLE)}</details>"
    return (
        f'<tr><th scope="row">{inline_html(says)}</th><td>{text(title)}</td>{shared}'
        f"<td>{place_html(place) if place else ''}{shown}</td><td>{hint or _NOTHING}</td></tr>\n"
    )


def _fallen(moved: Moved, tally: Tally) -> Iterator[str]:
    """Who fell most since the assignment before."""
    yield "<p>By a tenth of the points or more, the most first. Ask them what is different now.</p>"
    rows = (
        f'<tr><th scope="row">{tally.links[name]}</th>'
        f"{cell(f'{was:.0%}', was)}{cell(f'{now:.0%}', now)}</tr>\n"
        for name, was, now in moved.fallen[:_FALLEN]
        if name in tally.links
    )
    yield from table("fell", "Share of all points", ["Student", "Then", "Now"], rows)


def _shared(tally: Tally, first: Sequence[str], students: int) -> str:
    """How many students have something in common, and links to the first of them."""
    more = students - len(first)
    who = ", ".join(first) + (f" and {more} more" if more else "")
    share = students / max(len(tally.scores), 1)
    return cell(f"{bar(share)} {students}", students) + f"<td>{who}</td>"


def _unexplained(
    failures: Sequence[Unexplained],
    titles: Mapping[str, str],
    tally: Tally,
    hints: Hints,
    anonymous: bool,
) -> Iterator[str]:
    if not failures:
        yield "<p>No other failure.</p>\n"
        return
    yield (
        "<p>No known mistake explains them. The most common ones say where one answer goes wrong."
        "</p>\n"
    )

    def rows() -> Iterator[str]:
        for one in failures:
            names = [name for name in one.students[:NAMED] if name in tally.links]
            shared = _shared(tally, [tally.links[name] for name in names], len(one.students))
            place, example = one.place, without(one.students[0], "student", one.example)
            if anonymous:
                place = without(one.students[0], "student", place)
            title, hint = titles.get(one.stage, one.stage), numbered(hints, one.stage, one.hint)
            yield _feedback_row(one.says, title, shared, place, example, hint)

    yield from table("unnamed", "Most common first", _FEEDBACK, rows())


def _notes(tally: Tally, skipped: Sequence[str], anonymous: bool) -> Iterator[str]:
    for note in sorted(tally.unlocked):
        yield f"<p>{text(note[:1].upper() + note[1:])}.</p>\n"
    listed = (
        (tally.by_hand, "Set these points by hand: the grader itself failed"),
        (tally.unread, "Unreadable, so there was nothing to grade"),
        (tally.late, "Late"),
        (tally.odd, "Graded, but something was unusual"),
    )
    for one, words in listed:
        if one.students:
            yield f"<h3>{words} ({one.students})</h3>\n<ul>{''.join(one.lines)}</ul>\n"
            if one.students > len(one.lines):
                yield f"<p>And {one.students - len(one.lines)} more: see their pages.</p>\n"
    if skipped:
        yield f"<h3>Skipped ({len(skipped)})</h3>\n"
        if anonymous:
            yield "<p>The screen of <code>grade class</code> names them.</p>\n"
        else:
            yield f"<ul>{''.join(f'<li>{text(one)}</li>' for one in skipped)}</ul>\n"
    if not tally.unlocked and not skipped and not any(one.students for one, _ in listed):
        yield "<p>Nothing unusual.</p>\n"


# --- a student ---------------------------------------------------------------------------------


def _student(person: Person, students: int) -> Iterator[str]:
    number, name = person.number, person.entry.student
    ways = ['<a href="#class">The class</a>']
    if number > 1:
        ways.append(f'<a href="#s{number - 1}">Previous student</a>')
    if number < students:
        ways.append(f'<a href="#s{number + 1}">Next student</a>')
    yield (
        f'<section class="student" id="s{number}" aria-labelledby="n{number}" tabindex="-1">'
        f'<p class="back">{" · ".join(ways)}</p>'
        f'<h2 id="n{number}"><bdi>{text(person.name, LONG_NAME)}</bdi></h2>\n'
    )
    facts = {}
    if not person.anonymous and person.report and safe(name) == name and len(name) < NAME:
        words = f"grade class --out DIR --why={shlex.quote(name)}"
        facts["To replay it"] = f"<code>{text(words)}</code>"
    yield from about_student(person, facts)
    yield "</section>\n"


# --- small pieces ------------------------------------------------------------------------------


def _span(seconds: float) -> str:
    """90.0 as "1 min 30 s"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
