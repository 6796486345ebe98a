"""The course's own functions behind a worker's questions: only what they are for gets an answer."""

import os
import signal
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from grader.engine import Request, grade
from grader.run.solutions import References, solution_files
from grader.run.worker.wire import Frame, WireError
from grader.types.submission import Submission
from tests.kit.support.checkout import TINY

NAME = TINY.stages[0].entry_points[0].name


@pytest.fixture
def references(monkeypatch: pytest.MonkeyPatch) -> References:
    """References that give back the very question they would send on."""
    monkeypatch.setattr(References, "_exchange", lambda self, frame: frame)
    interpreter: Any = SimpleNamespace(forks=True, beside=None)
    return References(interpreter, TINY, TINY.stages[:1])


def test_a_question_keeps_nothing_that_only_a_check_may_ask(references: References) -> None:
    target = {"function": NAME, "given": "import os", "name": "os", "probe": "held"}
    before = [{"target": {"given": "import os", "name": "os"}, "args": []}]
    question = {"op": "call", "target": target, "args": 1, "before": before, "measured": True}
    asked = references.answer(Frame(question))
    assert asked.header == {"op": "call", "target": {"function": NAME}, "args": 1}
    assert asked.aside == {"begin": True}


@pytest.mark.parametrize(
    "target", [None, "x", {}, {"given": "x = 1", "name": "x"}, {"object": 0}, {"function": "print"}]
)
def test_nothing_else_is_answered(references: References, target: Any) -> None:
    with pytest.raises(WireError, match="only ask for the functions of earlier stages"):
        references.answer(Frame({"op": "call", "target": target}))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_later_stage_is_not_blamed_if_something_kills_the_worker_of_the_solutions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = solution_files(TINY)
    files["moving_average.py"] += b"\nright = moving_average\n"
    files["moving_average.py"] += b"def moving_average(*given): return 2 * right(*given)\n"
    exchange = References._exchange
    killed: list[int] = []

    def disturbed(self: References, frame: Frame) -> Frame:
        if self._worker is not None and not killed:
            killed.append(self._worker._pid)
            os.kill(killed[0], signal.SIGKILL)
        return exchange(self, frame)

    monkeypatch.setattr(References, "_exchange", disturbed)
    report = grade(TINY, Request(Submission("ann", files), TINY.stages[:2], seed=5), "cpu")
    assert killed
    assert report.stages[1].caused_by == "moving_average"
