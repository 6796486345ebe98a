"""A student's verdict as HTML, with the reasons for the points. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo

from grader.classes.folder.counted import Counted, counted
from grader.classes.folder.types import LedgerEntry
from grader.classes.late import Late
from grader.classes.report.look import text, verbatim
from grader.show.html import diagnosis_html, inline_html, look, titles_html
from grader.show.scoreboard import skipped_lines, standing
from grader.show.screen import amount
from grader.types.report import Cause, Outcome, Report, StageResult, Status
from grader.types.text import what_it_did

NAME = 60  # letters of a name in a table
_FILE = re.compile(r"\.(?:ipynb|py|zip)\b", re.IGNORECASE)
_UNSPACED = re.compile(r"[^\s/\\]+")
_LONG_NUMBER = 5  # digits of a number that no message holds by chance
LONG_NAME = 300  # and at the top of the student's page
_BY_HAND = "The grader itself failed here: set these points by hand."


@dataclass(frozen=True)
class Person:
    """A student's verdict, place in the class, name on the page, and whether it came late.

    The page shows times in this `zone`, in UTC without one.
    """

    number: int
    entry: LedgerEntry
    anonymous: bool
    late: Late | None = None
    zone: tzinfo | None = None

    @property
    def name(self) -> str:
        """The name that the page shows."""
        return f"Student {self.number}" if self.anonymous else self.entry.student

    @property
    def report(self) -> Report | None:
        """The report; None if there was nothing to grade or the grader failed."""
        return None if self.entry.is_refused else self.entry.report

    @property
    def counted(self) -> Counted:
        """The points as they count."""
        return counted(self.report, self.late)

    @property
    def link(self) -> str:
        """The name as a link to the student's section."""
        return f'<a href="#s{self.number}"><bdi>{text(self.name, NAME)}</bdi></a>'

    def hidden(self, words: str) -> str:
        """The words; on an anonymous page without the student's name, which files may contain."""
        return without(self.entry.student, self.name, words) if self.anonymous else words


def without(student: str, instead: str, words: str) -> str:
    """The words with something else instead of a student's name, also without a platform's number.

    A short number stays: a message may hold it as a number. A name that is one word is also found
    in capitals, and any other name in letters of any case. In the names of files, so is each word
    of a name, even beside a "_" or a number: hw1_ann.ipynb.
    """
    if is_short_number(student):
        return words
    names = [student, *re.findall(r"(.*\w)_\d+", student)]
    names += [way for name in names if len(name) > 2 for way in (name.title(), name.upper())]
    pattern = "|".join(map(re.escape, names))
    flags = 0 if student.isalpha() else re.IGNORECASE
    words = re.sub(rf"(?<!\w)({pattern})(?!\w)", lambda found: instead, words, flags=flags)
    parts = "|".join(part for part in re.findall(r"[^\W\d_]+", student) if len(part) > 2)
    if not parts:
        return words
    part = re.compile(rf"(?<![^\W\d_])({parts})(?![^\W\d_])", re.IGNORECASE)

    def hidden(name: str) -> str:
        return part.sub(lambda found: instead, name) if _FILE.search(name) else name

    return _UNSPACED.sub(lambda found: hidden(found[0]), words)


def is_short_number(student: str) -> bool:
    """Whether a student's name is a number that a message may hold by chance."""
    return student.isdecimal() and len(student) < _LONG_NUMBER


def about_student(person: Person, facts: Mapping[str, str]) -> Iterator[str]:
    """The verdict, all it depends on, further `facts` (HTML by name), and the reasons."""
    entry, report = person.entry, person.report
    yield from _facts(person, facts)
    notes = [*entry.record.notes]
    if report is not None:
        notes += skipped_lines(report)  # some cost points, as the stages' rows show
        notes += [note for note in report.notes if note != f"seed {entry.seed}"]
    if notes:
        items = "".join(f"<li>{text(person.hidden(note), 2000)}</li>" for note in notes)
        yield f"<h3>Notes</h3><ul>{items}</ul>"
    if report is not None:
        yield _scoreboard(report)
        for stage in report.stages:
            yield from _stage(person, report, stage)


def _facts(person: Person, more: Mapping[str, str]) -> Iterator[str]:
    entry, report = person.entry, person.report
    if report is not None:
        had = person.counted
        bonus = f" and {amount(had.bonus_left)} bonus" if had.bonus else ""
        points = f"<strong>{amount(had.score)}</strong> of {amount(had.most)}{bonus}"
        if person.late is not None:
            points += f"; {text(person.late.words)}"
    elif entry.is_lost:
        points = "by hand: the grader itself failed"
    else:
        points = "0: there was nothing to grade"
    facts = {"Points": points}
    if not person.anonymous:  # the times are nearly in the order of the names
        if entry.record.submitted is not None:
            facts["Submitted"] = text(moment(entry.record.submitted, person.zone))
        if person.late is not None:
            facts["Due"] = text(moment(person.late.due, person.zone))
        where = f", on {text(entry.device)}, in {entry.seconds:.2f} s" if entry.device else ""
        facts |= {
            "Graded": text(moment(entry.when, person.zone)) + where,
            "Seed": str(entry.seed),
            **({"Course": text(report.whole_name)} if report and report.version else {}),
            "Engine": f"<code>{text(entry.version.engine)}</code>",
        }
        if entry.record.content:
            facts["Submission"] = f"<code>{text(entry.record.content)}</code>"
    facts |= more
    yield "<dl>"
    for what, shown in facts.items():
        yield f"<dt>{what}</dt><dd>{shown}</dd>"
    yield "</dl>\n"


def _scoreboard(report: Report) -> str:
    rows = "".join(
        f'<tr><td>{look(stage)[0]}</td><th scope="row">{text(stage.title)}</th>'
        f"<td>{_points(stage)}</td><td>{standing_of(stage)}</td></tr>\n"
        for stage in report.stages
    )
    return (
        '<div class="box" tabindex="0"><table><caption>Each stage</caption><thead><tr>'
        '<td></td><th scope="col">Stage</th><th scope="col">Points</th><th scope="col">Status'
        f"</th></tr></thead><tbody>{rows}</tbody></table></div>\n"
    )


def _stage(person: Person, report: Report, stage: StageResult) -> Iterator[str]:
    """Why a stage lacks points, and what its code printed."""
    causes = stage.causes if stage.status is not Status.NOT_STARTED else ()
    if not causes and not stage.printed.strip():
        return
    yield f'<div class="stage"><h3>{look(stage)[0]} {text(stage.title)}: {standing_of(stage)}</h3>'
    if stage.caused_by is not None:
        titles = {other.slug: other.title for other in report.stages}
        earlier = text(titles.get(stage.caused_by, stage.caused_by))
        yield f"<p>It fails because it uses {earlier}, which is not right yet.</p>"
    yield '<div class="reasons">'
    for cause in causes:
        yield _cause(person, cause)
    yield "</div>"
    if stage.printed.strip():
        printed = verbatim(person.hidden(stage.printed))
        did = f"The code {what_it_did(stage.printed)}"
        yield f"<details><summary>{did}</summary>{printed}</details>"
    yield "</div>\n"


def _cause(person: Person, cause: Cause) -> str:
    """The checks that fail because of one mistake, and the message of one of them."""
    parts = [f'<div class="reason"><p>{titles_html(cause)}</p>']
    check = cause.show
    if check.outcome is Outcome.ERROR:
        parts.append(f"<p>{_BY_HAND}</p>")
    elif check.outcome is Outcome.TIMEOUT:
        parts.append("<p>It ran out of time and was stopped.</p>")
    found = check.diagnosis
    if found is not None:
        parts.append(f"<p>{diagnosis_html(found)}</p>")
        if found.place:
            parts.append(place_html(person.hidden(found.place)))
    if check.message.strip():
        parts.append(verbatim(person.hidden(check.message)))
    return "".join(parts) + "</div>"


def place_html(words: str) -> str:
    """Where a mistake is, and below it the code; there no line breaks, as carets point up."""
    where, _, code = words.partition("\n")
    return f"<p>{inline_html(where)}</p>" + (verbatim(code, style="code") if code else "")


def standing_of(stage: StageResult) -> str:
    """A stage's status in words."""
    return "failed because of an earlier stage" if stage.caused_by else standing(stage)


def _points(stage: StageResult) -> str:
    bonus = " bonus" if stage.bonus else ""
    return f"{amount(stage.score)} of {amount(stage.max_score)}{bonus}"


def moment(when: datetime, zone: tzinfo | None) -> str:
    """A time as "2026-01-31 13:00:00 CET" in this zone, or in UTC."""
    return f"{when.astimezone(zone or timezone.utc):%Y-%m-%d %H:%M:%S %Z}"
