"""Our own functions, which answer in the checker's process."""

import warnings
from typing import Any

import pytest

from grader.run.local_answers import answered_here
from grader.run.worker.bench import Bench
from grader.run.worker.packing import Packer
from grader.run.worker.wire import Frame


def warns(text: Any) -> Any:
    warnings.warn(text, RuntimeWarning, stacklevel=1)
    return text


def test_warnings_of_our_own_code_are_not_shown(recwarn: pytest.WarningsRecorder) -> None:
    packer = Packer()
    header = {"op": "call", "target": {"function": "warns"}, "args": packer.pack(["a"])}
    header |= {"kwargs": packer.pack({}), "differentiate": False, "parameters": []}
    reply = answered_here(Bench(lambda name: warns), packer.frame(header))
    assert isinstance(reply, Frame) and reply.header["value"] == "a"
    assert not recwarn.list
