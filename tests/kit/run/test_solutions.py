"""The course's own functions behind a worker's questions: only what they are for gets an answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.read.course_file import read_course
from grader.run.solutions import References
from grader.run.worker.wire import Frame, WireError

COURSE = read_course(Path(__file__).parents[1] / "courses" / "tiny" / "course.toml")
NAME = COURSE.stages[0].entry_points[0].name


@pytest.fixture
def references(monkeypatch: pytest.MonkeyPatch) -> References:
    """References that give back the very question they would send on."""
    monkeypatch.setattr(References, "_exchange", lambda self, frame: frame)
    interpreter: Any = SimpleNamespace(forks=True, beside=None)
    return References(interpreter, COURSE, COURSE.stages[:1])


def test_a_question_keeps_nothing_that_only_a_check_may_ask(references: References) -> None:
    target = {"function": NAME, "given": "import os", "name": "os", "probe": "held"}
    before = [{"target": {"given": "import os", "name": "os"}, "args": []}]
    question = {"op": "call", "target": target, "args": 1, "before": before, "measured": True}
    asked = references.answer(Frame(question))
    assert asked.header == {"op": "call", "target": {"function": NAME}, "args": 1}
    assert asked.aside == {"begin": True}


@pytest.mark.parametrize(
    "target",
    [None, "x", {}, {"given": "x = 1", "name": "x"}, {"object": 0}, {"function": "print"}],
)
def test_nothing_else_is_answered(references: References, target: Any) -> None:
    with pytest.raises(WireError, match="only ask for the functions of earlier stages"):
        references.answer(Frame({"op": "call", "target": target}))
