"""hints/traces/<slug>.py: where it is and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.learning.pictures.examples import read_trace, traced_stages
from grader.types.course import Course, Limits, Stage
from grader.types.errors import CourseError


@pytest.fixture
def course(tmp_path: Path) -> Course:
    stages = tuple(
        Stage(slug, slug.title(), 1, False, (), (), tmp_path) for slug in ("first", "second")
    )
    (tmp_path / "hints" / "traces").mkdir(parents=True)
    return Course("birds", "Birds", tmp_path, (), Limits(), stages)


def write(course: Course, text: str) -> Stage:
    stage = course.stages[1]
    stage.trace_file.write_text(text, encoding="utf-8")
    return stage


def test_only_stages_with_a_file_are_traced(course: Course) -> None:
    assert traced_stages(course) == ()
    stage = write(course, "def trace(submission): yield 'x'")
    assert traced_stages(course) == (stage,)
    assert list(read_trace(stage, stage.trace_file)(None)) == ["x"]


@pytest.mark.parametrize(
    "text, said",
    [
        ("def trace(", ":1: SyntaxError"),
        ("import no_such_library", ":1: ModuleNotFoundError"),
        ("trace = 3", "has no function trace(submission)"),
        ("", "has no function trace(submission)"),
    ],
)
def test_faults(course: Course, text: str, said: str) -> None:
    stage = write(course, text)
    with pytest.raises(CourseError) as error:
        read_trace(stage, stage.trace_file)
    assert str(error.value).startswith("hints/traces/second.py:")
    assert said in str(error.value)
