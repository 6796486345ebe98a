"""Reads tests/mutants/<slug>.toml: an author's records about a stage's mutants.

    [[equivalent]]
    where = "mean"
    before = "total = sum(values, 0)"
    after = "total = sum(values, )"
    reason = "sum starts with 0 by default"

    [overlaps.shape]
    reason = "reports a wrong shape before the values are compared"
    catches = ["mean.axis.9f1b2c", "mean_of_all"]

Its changed lines, without indentation and comments, identify an equivalent mutant, as `grade verify
--mutants` shows it. If one reason holds for several mutants of the same lines, `after` is a list.
The list `catches` of an overlapping check holds ids, which `--needed` prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from grader.authoring.mutants.types import Change, Equivalent, Overlap, Records
from grader.read.course_file import parse_toml
from grader.read.faults import author_text
from grader.types.course import Stage
from grader.types.errors import CourseError
from grader.types.text import listed

_KEYS = ("where", "before", "after", "reason")
_OVERLAP_KEYS = ("reason", "catches")


def read_records(stage: Stage) -> Records:
    """The records of the stage's mutants, empty without a file. Raises CourseError."""
    file = stage.mutants_file
    place = stage.place(file)
    if not file.exists():
        return Records(place)
    return parse_records(parse_toml(author_text(file, place), place), place)


def parse_records(table: dict[str, Any], place: str) -> Records:
    """The records of a file's table. Raises CourseError."""
    _expect_keys(table, ("equivalent", "overlaps"), place)
    equivalent = table.get("equivalent", [])
    overlaps = table.get("overlaps", {})
    if not isinstance(equivalent, list):
        raise CourseError(f"{place}: write [[equivalent]] with double brackets")
    if not isinstance(overlaps, dict):
        raise CourseError(f"{place}: 'overlaps' is not a table of checks")
    records: dict[Change, Equivalent] = {}
    for number, each in enumerate(equivalent, start=1):
        for one in _each(each):
            record = _equivalent(one, f"{place}: equivalent {number}")
            if record.change in records:
                raise CourseError(f"{place}: equivalent {number}: appears twice: remove one")
            records[record.change] = record
    return Records(
        place,
        tuple(records.values()),
        {check: _overlap(each, f"{place}: overlaps.{check}") for check, each in overlaps.items()},
    )


def equivalent_lines(record: Equivalent) -> Iterator[str]:
    """A mutant's record as written in the file."""
    yield "[[equivalent]]"
    lines = ("\n".join(record.before), "\n".join(record.after))
    for key, value in zip(_KEYS, (record.where, *lines, record.reason), strict=True):
        yield f"{key} = {json.dumps(value, ensure_ascii=False)}"


def overlap_lines(check: str, overlap: Overlap) -> Iterator[str]:
    """A check's record as written in the file."""
    yield f"[overlaps.{check}]"
    yield f"reason = {json.dumps(overlap.reason, ensure_ascii=False)}"
    yield f"catches = {json.dumps(overlap.catches, ensure_ascii=False)}"


def _overlap(table: Any, place: str) -> Overlap:
    _expect_keys(table, _OVERLAP_KEYS, place)
    reason, catches = table.get("reason"), table.get("catches")
    if not isinstance(reason, str) or not reason.strip():
        raise CourseError(f"{place}: 'reason' is missing: say why the check is there")
    if not isinstance(catches, list) or not all(isinstance(each, str) for each in catches):
        raise CourseError(f"{place}: 'catches' is not a list of ids: `--needed` prints one")
    if not catches:
        raise CourseError(f"{place}: 'catches' is empty: `--needed` prints what to write")
    return Overlap(reason.strip(), tuple(catches))


def _expect_keys(table: Any, keys: Sequence[str], place: str) -> None:
    """Expect a table with no other keys. Raises CourseError."""
    if not isinstance(table, dict):
        raise CourseError(f"{place}: is not a table of {listed(keys)}")
    for key in table:
        if key not in keys:
            raise CourseError(f"{place}: unknown key '{key}': use {listed(keys)}")


def _each(table: Any) -> list[Any]:
    """A table for each of the changes that `after` lists; else the table itself."""
    after = table.get("after") if isinstance(table, dict) else None
    if isinstance(after, list) and after:
        return [{**table, "after": text} for text in after]
    return [table]


def _equivalent(table: Any, place: str) -> Equivalent:
    _expect_keys(table, _KEYS, place)
    for key in _KEYS:
        if not isinstance(table.get(key), str):
            raise CourseError(f"{place}: '{key}' is missing, or is not text")
    if not table["reason"].strip():
        raise CourseError(f"{place}: 'reason' is empty: say why no check can tell them apart")
    before, after = (_lines(table[key]) for key in ("before", "after"))
    return Equivalent(table["where"], before, after, table["reason"].strip())


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())
