"""What an author records of mutants, and what is said of a record that makes no sense."""

from __future__ import annotations

from typing import Any

import pytest

from grader.read.mutants import parse_records
from grader.types.errors import CourseError

RECORD = {"where": "f", "before": "  x = 1\n", "after": "x = 2", "reason": "it is the same"}


def test_lines_are_kept_without_their_indentation() -> None:
    records = parse_records({"equivalent": [RECORD], "overlaps": {"shape": "first"}}, "f.toml")
    assert records.equivalent[0].change == ("f", ("x = 1",), ("x = 2",))
    assert records.overlaps == {"shape": "first"}


def test_there_need_be_no_record() -> None:
    assert parse_records({}, "f.toml").equivalent == ()


@pytest.mark.parametrize(
    "table, match",
    [
        ({"equivalents": []}, "unknown key 'equivalents'"),
        ({"equivalent": RECORD}, r"write \[\[equivalent\]\]"),
        ({"equivalent": ["x"]}, "equivalent 1: is not a table"),
        ({"equivalent": [{**RECORD, "why": ""}]}, "equivalent 1: unknown key 'why'"),
        ({"equivalent": [{"where": "f"}]}, "equivalent 1: 'before' is missing"),
        ({"equivalent": [{**RECORD, "reason": " "}]}, "equivalent 1: 'reason' is empty"),
        ({"equivalent": [RECORD, RECORD]}, "equivalent 2: is there twice"),
        ({"overlaps": []}, "'overlaps' is not a table"),
        ({"overlaps": {"shape": ""}}, "overlaps: 'shape' needs a reason"),
    ],
)
def test_a_record_that_makes_no_sense_is_an_error(table: dict[str, Any], match: str) -> None:
    with pytest.raises(CourseError, match=f"^f.toml: .*{match}"):
        parse_records(table, "f.toml")
