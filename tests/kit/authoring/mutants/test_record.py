"""What an author records of mutants, and what is said of a record that makes no sense."""

import sys
from typing import Any

import pytest

from grader.authoring.mutants.record import equivalent_lines, overlap_lines, parse_records
from grader.authoring.mutants.types import Equivalent, Overlap
from grader.types.errors import CourseError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OVERLAP = {"reason": "first", "catches": ["mean_of_all"]}
RECORD = {"where": "f", "before": "  x = 1\n", "after": "x = 2", "reason": "it is the same"}


def test_lines_are_kept_without_their_indentation() -> None:
    (equivalent,) = parse_records({"equivalent": [RECORD]}, "f.toml").equivalent
    assert equivalent.change == ("f", ("x = 1",), ("x = 2",))


def test_one_reason_may_hold_for_several_changes() -> None:
    records = parse_records({"equivalent": [{**RECORD, "after": ["x = 2", "x = 3"]}]}, "f.toml")
    assert [record.after for record in records.equivalent] == [("x = 2",), ("x = 3",)]


def test_a_record_of_an_overlap_is_read_as_it_is_written() -> None:
    overlap = Overlap('says "why"', ("f.axis.1a2b3c", "mean_of_all"))
    lines = overlap_lines("shape", overlap)
    assert parse_records(tomllib.loads("\n".join(lines)), "f.toml").overlaps == {"shape": overlap}


def test_a_record_of_a_mutant_is_read_as_it_is_written() -> None:
    equivalent = Equivalent("f", ("x = {", '"a": 1}'), ("x = {}",), 'says "why"')
    lines = equivalent_lines(equivalent)
    assert parse_records(tomllib.loads("\n".join(lines)), "f.toml").equivalent == (equivalent,)


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
        ({"equivalent": [RECORD, RECORD]}, "equivalent 2: appears twice"),
        ({"equivalent": [{**RECORD, "after": ["x", "x"]}]}, "equivalent 1: appears twice"),
        ({"equivalent": [{**RECORD, "after": ["x", 3]}]}, "equivalent 1: 'after' is missing, or"),
        ({"equivalent": [{**RECORD, "after": []}]}, "equivalent 1: 'after' is missing, or"),
        ({"overlaps": []}, "'overlaps' is not a table"),
        ({"overlaps": {"shape": "first"}}, r"overlaps\.shape: is not a table of reason"),
        ({"overlaps": {"shape": {**OVERLAP, "why": ""}}}, "shape: unknown key 'why'"),
        (
            {"overlaps": {"shape": {**OVERLAP, "reason": " "}}},
            "shape: 'reason' is missing: say why",
        ),
        ({"overlaps": {"shape": {"reason": "first"}}}, "shape: 'catches' is not a list of ids"),
        ({"overlaps": {"shape": {**OVERLAP, "catches": [3]}}}, "shape: 'catches' is not a list"),
        ({"overlaps": {"shape": {**OVERLAP, "catches": []}}}, "shape: 'catches' is empty"),
    ],
)
def test_a_record_that_makes_no_sense_is_an_error(table: dict[str, Any], match: str) -> None:
    with pytest.raises(CourseError, match=f"^f.toml: .*{match}"):
        parse_records(table, "f.toml")
