"""A class's verdicts as tables for other programs: a CSV file, lines of JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from grader.show.screen import amount
from grader.types.course import Stage
from grader.types.ledger import Entry
from grader.types.report import to_json
from grader.types.text import safe

# The wide ones are taken for the others by some spreadsheets.
_BEGIN_FORMULAS = ("=", "+", "-", "@", "\t", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def score_rows(entries: Iterable[Entry], stages: Iterable[Stage]) -> Iterator[list[str]]:
    """A row of names, then one for each student: the points in all and in each stage.

    A cell is empty where nobody knows the points.
    """
    slugs = [stage.slug for stage in stages]
    yield ["student_id", "score", "max_score", "bonus", *slugs, "status", "seed", "graded", "notes"]
    for entry in entries:
        report = entry.report
        by_slug = {} if report is None else {stage.slug: stage for stage in report.stages}
        notes = _cell(" ".join(entry.hand_in.notes))
        if report is None:
            status, score = ("by hand", "") if entry.is_lost else ("nothing to grade", "0")
            points = [score, "", "", *("" for _ in slugs)]
        else:
            status = "passed" if report.passed else "not yet"
            points = [amount(report.score), amount(report.max_score), amount(report.bonus)]
            points += [amount(by_slug[slug].score) if slug in by_slug else "" for slug in slugs]
        yield [_cell(entry.student), *points, status, str(entry.seed), entry.when, notes]


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    text = safe(text).replace("\n", " ")
    return f"'{text}" if text[:1] in _BEGIN_FORMULAS else text


def json_line(entry: Entry) -> str:
    """Everything about one student as one line: the report and all that it depends on."""
    data = {
        "student": safe(entry.student),
        "number": entry.number,
        "when": entry.when,
        "seconds": round(entry.seconds, 3),
        "seed": entry.seed,
        "device": entry.device,
        "engine": entry.version.engine,
        "stages": entry.version.stages,
        "content": entry.hand_in.content,
        "notes": [*entry.hand_in.notes, *(() if entry.report is None else entry.report.notes)],
        "is_lost": entry.is_lost,
        "report": None if entry.report is None else to_json(entry.report),
    }
    return json.dumps(data, ensure_ascii=False) + "\n"
