"""hints/traces/<slug>.py: what may be wrong with it."""

from pathlib import Path

import pytest

from grader.learning.pictures.tracer import read_trace
from grader.types.course import Stage
from grader.types.errors import CourseError


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "hints" / "traces").mkdir(parents=True)
    return Stage("second", "Second", 1, False, (), (), tmp_path)


@pytest.mark.parametrize(
    "text, said",
    [
        ("def trace(", ":1: SyntaxError"),
        ("import no_such_library", ":1: ModuleNotFoundError"),
        ("trace = 3", "has no function trace(submission)"),
        ("", "has no function trace(submission)"),
    ],
)
def test_faults(stage: Stage, text: str, said: str) -> None:
    stage.trace_file.write_text(text, encoding="utf-8")
    with pytest.raises(CourseError) as error:
        read_trace(stage, stage.trace_file)
    assert str(error.value).startswith("hints/traces/second.py:")
    assert said in str(error.value)
