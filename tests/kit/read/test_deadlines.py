"""Deadlines, extensions and late rules in course.toml: read over time zones and daylight saving."""

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from grader.read.course_file import course_of_text, parse_course
from grader.types.course import Assignment, LateRule
from grader.types.errors import CourseError

clock = datetime.fromisoformat  # without a time zone
DUE = clock("2026-10-30T23:59")
STAGES = [{"slug": "fold", "title": "Fold", "points": 4, "entry_points": {"fold": "number"}}]
COURSE = {"schema": 1, "name": "birds", "title": "Birds", "stages": STAGES}


def assignment(zone: str = "", **keys: Any) -> Assignment:
    table = {"name": "a", "stages": ["fold"], **keys}
    data = {**COURSE, "timezone": zone, "assignments": [table]}
    return parse_course(data, Path("/birds")).assignments[0]


def utc(text: str) -> datetime:
    return clock(text).replace(tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("zone", "shown", "expected"),
    [
        ("Europe/Berlin", "2026-07-01T23:59", "2026-07-01T21:59"),
        ("Europe/Berlin", "2026-01-01T23:59", "2026-01-01T22:59"),
        ("America/New_York", "2026-03-08T01:59", "2026-03-08T06:59"),
        ("America/New_York", "2026-03-08T03:00", "2026-03-08T07:00"),
        ("Asia/Kathmandu", "2026-07-01T00:00", "2026-06-30T18:15"),
        ("Australia/Lord_Howe", "2026-04-05T01:45", "2026-04-04T15:15"),  # half an hour twice
        ("Pacific/Apia", "2026-01-01T12:00", "2025-12-31T23:00"),
    ],
)
def test_a_deadline_is_what_the_clocks_there_show(zone: str, shown: str, expected: str) -> None:
    assert assignment(zone, due=clock(shown)).due == utc(expected)


def test_of_an_hour_that_comes_twice_the_second_counts() -> None:
    due = clock("2026-10-25T02:30")  # 00:30 and 01:30 UTC
    assert assignment("Europe/Berlin", due=due).due == utc("2026-10-25T01:30")
    there = assignment("America/Sao_Paulo", due=due, extensions={"ada": DUE})
    assert there.extensions == {"ada": utc("2026-10-31T02:59")}


def test_a_time_with_an_offset_needs_no_zone() -> None:
    due = DUE.replace(tzinfo=timezone(timedelta(hours=-7)))
    assert assignment(due=due).due == utc("2026-10-31T06:59")


def test_everything_as_an_author_writes_it() -> None:
    text = """
schema = 1
name = "birds"
title = "Birds"
timezone = "Europe/Berlin"
[[assignments]]
name = "midterm"
stages = ["fold"]
due = 2026-10-30T23:59:00
late = { per_day = 0.1, cap = 0.5, grace_minutes = 15 }
exam = true
[assignments.extensions]
ada = 2026-11-02T23:59:00
"bob@x.org" = 2026-11-03T12:00:00Z
[[stages]]
slug = "fold"
title = "Fold"
points = 4
entry_points = { fold = "number" }
[[stages]]
slug = "bird"
title = "Bird"
points = 4
entry_points = { bird = "number" }
"""
    course = course_of_text(text, Path("/birds/course.toml"))
    [found] = course.assignments
    assert (found.due, found.is_exam) == (utc("2026-10-30T22:59"), True)
    assert found.late == LateRule(per_day=0.1, cap=0.5, grace_minutes=15)
    extensions = {"ada": utc("2026-11-02T22:59"), "bob@x.org": utc("2026-11-03T12:00")}
    assert found.extensions == extensions
    assert [stage.is_exam for stage in course.stages] == [True, False]


def test_an_assignment_needs_none_of_it() -> None:
    found = assignment()
    assert (found.due, found.extensions, found.late, found.is_exam) == (None, {}, None, False)


@pytest.mark.parametrize(
    ("zone", "keys", "said"),
    [
        ("", {"deu": DUE}, "assignment 'a': unknown key 'deu' (did you mean 'due'?)"),
        ("", {"exam": "yes"}, "assignment 'a': 'exam' must be true or false"),
        ("", {"due": "2026-10-30"}, "'due': must be a date and a time without quotes, such as"),
        ("", {"due": DUE.date()}, f"2026-10-30T23:59:00, not {DUE.date()}"),
        ("", {"due": clock("9999-12-31T00:00")}, "'due': the year must be from 2 to 9998"),
        ("", {"due": clock("0001-01-01T00:00")}, "'due': the year must be from 2 to 9998"),
        ("", {"due": DUE}, "'due': has no time zone: add timezone = \"Europe/Berlin\", or yours"),
        ("Europe/Berlim", {}, "'timezone': there is no 'Europe/Berlim' (did you mean 'Europe/B"),
        ("../up", {}, "course.toml: 'timezone': there is no '../up'"),
        ("\0", {}, "course.toml: 'timezone': there is no '\\x00'"),
        (
            "Europe/Berlin",
            {"due": clock("2026-03-29T02:30")},
            "'due': the clocks in Europe/Berlin skip 02:30 on that day: write 2026-03-29T03:30:00",
        ),
        (
            "America/New_York",
            {"extensions": {"ada": clock("2026-03-08T02:00")}},
            "extensions: 'ada': the clocks in America/New_York skip 02:00",
        ),
        ("", {"extensions": []}, "'extensions' must be a table, such as { ada = 2026-"),
        ("", {"extensions": {"ada": 3}}, "extensions: 'ada': must be a date and a time"),
        (
            "Europe/Berlin",
            {"due": DUE, "extensions": {"ada": clock("2026-10-30T22:00")}},
            "assignment 'a': extensions: 'ada': is earlier than 'due'",
        ),
        ("", {"late": 3}, "assignment 'a': late: must be a table, such as { per_day = "),
        ("", {"late": {"cap": 1}}, "assignment 'a': late: 'per_day' is missing"),
        ("", {"late": {"perday": 1}}, "late: unknown key 'perday' (did you mean 'per_day'?)"),
        ("", {"late": {"per_day": 10}}, "late: 'per_day' must be from 0 to 1, not 10"),
        ("", {"late": {"per_day": True}}, "late: 'per_day' must be from 0 to 1, not True"),
        ("", {"late": {"per_day": float("nan")}}, "late: 'per_day' must be from 0 to 1, not nan"),
        (
            "",
            {"late": {"per_day": 0.1, "grace_minutes": -1}},
            "late: 'grace_minutes' must be from 0 to 525600, not -1",
        ),
    ],
)
def test_says_what_is_wrong(zone: str, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(CourseError, match=re.escape(said)):
        assignment(zone, **keys)
