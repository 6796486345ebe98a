"""A class's verdicts as tables for other programs: a CSV file, lines of JSON. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from grader.classes.folder.counted import counted, late_of
from grader.classes.folder.types import LedgerEntry
from grader.show.screen import amount
from grader.types.course import Assignment
from grader.types.report import to_json
from grader.types.text import safe, safe_data

# Some spreadsheets treat the wide signs like the ASCII ones. A text that has quotes before the sign
# counts too, so that no two texts give the same cell.
_FORMULA = re.compile(r"['\s]*[=+@\t\uff1d\uff0b\uff0d\uff20-]")


_ABOUT = ("student_id", "score", "max_score", "bonus", "late_penalty")
_MORE = ("status", "seed", "submitted", "graded", "notes")


def score_rows(entries: Iterable[LedgerEntry], assignment: Assignment) -> Iterator[list[str]]:
    """A header row, then one row for each student: the points in total and in each stage.

    The score and the bonus are what the late penalty leaves of the stages' points. A cell is empty
    if the points, or the time of submission, are unknown.
    """
    slugs = [stage.slug for stage in assignment.stages]
    yield [*_ABOUT, *slugs, *_MORE]
    for entry in entries:
        report = entry.report
        by_slug = {} if report is None else {stage.slug: stage for stage in report.stages}
        unlocked = () if report is None else report.unlocked
        notes = csv_cell(" ".join([*entry.unusual, *unlocked]))
        if report is None:
            status, points = "by hand", [""] * (4 + len(slugs))
        else:
            status = "passed" if report.passed else "not yet"
            status = "nothing to grade" if report.refusal else status
            found = counted(report, late_of(assignment, entry))
            values = (found.score, found.most, found.bonus_left, found.penalty)
            points = [amount(value) for value in values]
            points += [amount(by_slug[slug].score) if slug in by_slug else "" for slug in slugs]
        when = "" if entry.record.submitted is None else entry.record.submitted.isoformat()
        facts = status, str(entry.seed), when, entry.when.isoformat(), notes
        yield [csv_cell(entry.student), *points, *facts]


def csv_cell(text: str) -> str:
    """The text, changed so that no spreadsheet runs it as a formula."""
    text = safe(text).replace("\n", " ")
    return f"'{text}" if _FORMULA.match(text) else text


def cell_text(cell: str) -> str:
    """The text of a cell, without the quote that `csv_cell` may have put before it."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell[1:]) else cell


def json_line(entry: LedgerEntry, assignment: Assignment) -> str:
    """One student's verdict as one line: the report and everything it depends on."""
    late, submitted = late_of(assignment, entry), entry.record.submitted
    found = counted(entry.report, late)
    data = {
        "student": entry.student,
        "number": entry.number,
        "when": entry.when.isoformat(),
        "submitted": submitted and submitted.isoformat(),
        "seconds_late": late and round(late.seconds, 3),
        "late_penalty": round(found.penalty, 2),
        "seconds": round(entry.seconds, 3),
        "seed": entry.seed,
        "device": entry.device,
        "engine": entry.version.engine,
        "stages": entry.version.stages,
        "content": entry.record.content,
        "notes": [*entry.record.notes, *(() if entry.report is None else entry.report.notes)],
        "is_lost": entry.is_lost,
        "report": None if entry.report is None else to_json(entry.report),
    }
    return json.dumps(safe_data(data), ensure_ascii=False) + "\n"
