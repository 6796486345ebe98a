"""tests/mutants/<slug>.toml -> what an author has recorded of a stage's mutants.

    [[equivalent]]
    where = "mean"
    before = "total = sum(values, 0)"
    after = "total = sum(values, )"
    reason = "0 is what sum begins with anyway"

    [overlaps.shape]
    reason = "tells of the shape before the values are compared"
    catches = ["mean.axis.9f1b2c", "mean_of_all"]

An equivalent mutant is named by its changed lines, without indentation and comments: as `grade
verify --mutants` shows them. What an overlapping check catches are ids, which `--needed` prints.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator
from typing import Any

from grader.read.faults import author_text
from grader.types.course import Stage
from grader.types.errors import CourseError, close_to
from grader.types.mutants import Equivalent, Overlap, Records

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_KEYS = ("where", "before", "after", "reason")
_OVERLAP_KEYS = ("reason", "catches")


def read_records(stage: Stage) -> Records:
    """What is recorded of the stage's mutants, nothing without a file. Raises CourseError."""
    file = stage.mutants_file
    place = stage.place(file)
    if not file.exists():
        return Records(place)
    text = author_text(file, place)
    try:
        return parse_records(tomllib.loads(text), place)
    except tomllib.TOMLDecodeError as error:
        raise CourseError(f"{place}: is not TOML: {error}") from None


def parse_records(table: dict[str, Any], place: str) -> Records:
    """The records of a file's table. Raises CourseError."""
    for key in table:
        if key not in ("equivalent", "overlaps"):
            raise CourseError(f"{place}: unknown key '{key}': there are 'equivalent', 'overlaps'")
    equivalent = table.get("equivalent", [])
    overlaps = table.get("overlaps", {})
    if not isinstance(equivalent, list):
        raise CourseError(f"{place}: write [[equivalent]], as there may be several")
    if not isinstance(overlaps, dict):
        raise CourseError(f"{place}: 'overlaps' is not a table of checks")
    records = tuple(
        _equivalent(each, f"{place}: equivalent {number}")
        for number, each in enumerate(equivalent, start=1)
    )
    for number, record in enumerate(records):
        if any(record.change == other.change for other in records[:number]):
            raise CourseError(f"{place}: equivalent {number + 1}: is there twice")
    return Records(
        place,
        records,
        {check: _overlap(each, f"{place}: overlaps.{check}") for check, each in overlaps.items()},
    )


def equivalent_lines(record: Equivalent) -> Iterator[str]:
    """A mutant's record as the file has it."""
    yield "[[equivalent]]"
    lines = ("\n".join(record.before), "\n".join(record.after))
    for key, value in zip(_KEYS, (record.where, *lines, record.reason), strict=True):
        yield f"{key} = {json.dumps(value, ensure_ascii=False)}"


def overlap_lines(check: str, overlap: Overlap) -> Iterator[str]:
    """A check's record as the file has it."""
    yield f"[overlaps.{check}]"
    yield f"reason = {json.dumps(overlap.reason, ensure_ascii=False)}"
    yield "catches = ["
    for witness in overlap.catches:
        yield f"    {json.dumps(witness, ensure_ascii=False)},"
    yield "]"


def no_checks(records: Records, checks: Collection[str]) -> Iterator[str]:
    """What is said of records of overlaps that are of none of the stage's `checks`."""
    for check in records.overlaps:
        if check not in checks:
            said = f"there is no check '{check}'{close_to(check, checks)}"
            yield f"{records.place}: overlaps: {said}"


def _overlap(table: Any, place: str) -> Overlap:
    if not isinstance(table, dict):
        raise CourseError(f"{place}: is not a table of 'reason' and 'catches'")
    for key in table:
        if key not in _OVERLAP_KEYS:
            raise CourseError(f"{place}: unknown key '{key}': there are 'reason', 'catches'")
    reason, catches = table.get("reason"), table.get("catches")
    if not isinstance(reason, str) or not reason.strip():
        raise CourseError(f"{place}: 'reason' is missing: why is the check there?")
    if not isinstance(catches, list) or not all(isinstance(each, str) for each in catches):
        raise CourseError(f"{place}: 'catches' is no list of ids: `--needed` prints one")
    if not catches:
        raise CourseError(f"{place}: 'catches' is empty: `--needed` prints what to write")
    return Overlap(reason.strip(), tuple(catches))


def _equivalent(table: Any, place: str) -> Equivalent:
    if not isinstance(table, dict):
        raise CourseError(f"{place}: is not a table")
    for key in table:
        if key not in _KEYS:
            raise CourseError(f"{place}: unknown key '{key}': there are {', '.join(_KEYS)}")
    for key in _KEYS:
        if not isinstance(table.get(key), str):
            raise CourseError(f"{place}: '{key}' is missing, or is not text")
    if not table["reason"].strip():
        raise CourseError(f"{place}: 'reason' is empty: why can no check tell them apart?")
    before, after = (_lines(table[key]) for key in ("before", "after"))
    return Equivalent(table["where"], before, after, table["reason"].strip())


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())
