"""What a worker may send, and a checker that reads it: a load reply, then replies to calls."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import torch
from hypothesis import strategies as st

from grader.run.answers import WorkerAnswers
from grader.run.failures import AnswerError
from grader.run.importing import Import
from grader.run.remote import RemoteSubmission
from grader.run.trials import Trial, trial_of
from grader.run.under_check import StageUnderCheck
from grader.run.value_words import described
from grader.run.worker.packing import Packer
from grader.run.worker.wire import Channel, Closed, WireError
from grader.types.course import EntryPoint, Limits
from grader.types.submission import Submission
from tests.kit.fuzz.damage import as_json, damaged_bytes, damaged_data
from tests.kit.fuzz.readers import STAGE, Reader
from tests.kit.support.checkout import TINY

FRAME: Any = {"file": "fold.py", "line": 3, "function": "fold", "text": "x = 1"}
ERROR: Any = {
    "type": "ValueError",
    "bases": ["ValueError", "Exception"],
    "message": "no",
    "stub": False,
    "frames": [FRAME, FRAME],
}
CELL: Any = {**ERROR, "source": "def unfold(): 1/0"}
LOADED: Any = {"defined": ["fold"], "others": ["fild", "x"], "cells": [CELL]}
ASIDE: Any = {"printed": "hello", "forbidden": [{"name": "torch.softmax", "frames": [FRAME]}]}
TRIED: Any = {"outcomes": [["test_a", "passed"]], "made": 1, "ended": "", "first": ERROR}
POINTS = [EntryPoint("fold", ("any",)), EntryPoint("unfold", ("any",))]
FOLDING = replace(STAGE, entry_points=tuple(POINTS), forbidden=("torch.softmax",))
LIMITS = Limits(call_seconds=5, load_seconds=5, stage_seconds=20)
FOLD = replace(TINY, stages=(FOLDING,), limits=LIMITS)


class Pipe:
    """A connection whose other side has sent these bytes, reads what it is sent, and is gone."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def settimeout(self, seconds: float | None) -> None:
        """Nobody waits here."""

    def recv(self, count: int) -> bytes:
        """The next bytes."""
        found, self._data = self._data[:count], self._data[count:]
        return found

    def send(self, data: memoryview) -> int:
        """All is read at once."""
        return len(data)

    def close(self) -> None:
        """Nothing is left to do."""


class Said:
    """An interpreter and a worker of it, which says what was written down."""

    forks = gpu = True

    def __init__(self, data: bytes) -> None:
        self.channel = Channel(Pipe(data))
        self.is_there = False

    def start(self, **how: bool) -> Said:
        """The one worker."""
        return self

    def allow(self, seconds: float) -> None:
        """It needs no time."""

    def waited_seconds(self) -> float:
        """It waits for no CPU."""
        return 0.0

    def end(self, grace: float = 0.0) -> None:
        """It has no process."""

    release = end


def framed(header: Any, data: bytes = b"", aside: Any = None) -> bytes:
    """A frame as it travels."""
    text, more = as_json(header), b"" if aside is None else as_json(aside)
    return struct.pack("<III", len(text), len(data), len(more)) + text + more + data


def _reply() -> tuple[Any, bytes]:
    """The reply to a call, with values of every kind."""
    packer = Packer()
    array = torch.arange(6.0).reshape(2, 3).requires_grad_()
    several = [array, array.T, numpy.arange(3), {"a": 1, 2: (None, True)}, torch.float32, "text"]
    several += [{(1, 2): {frozenset({3})}}, b"bytes", 1 + 2j, SimpleNamespace(kind="word")]
    header = {"value": packer.pack([*several, torch.device("cpu"), 1.5]), "call": 1}
    header["changed"] = packer.pack([(1, torch.ones(2, 3))])
    frame = packer.frame({**header, "peak": 12})
    return frame.header, frame.data


VALUES, DATA = _reply()
GRADIENTS = Packer()
BACK: Any = {"value": GRADIENTS.pack([torch.ones(2, 3)])}
BACK = GRADIENTS.frame(BACK)


def ask(data: bytes, folder: Path) -> str:
    """Put a check's questions to a worker that says this, and use what comes.

    What was made of the answers is returned. Raises AnswerError, and WireError in a backward pass.
    """
    answers = WorkerAnswers(Said(data), Import(FOLD, FOLDING, Submission("a", {}, cells=("x",))))
    stage = StageUnderCheck(FOLDING, answers)
    try:
        stage.begin(1)
        given = torch.zeros(2, 3, requires_grad=True), torch.zeros(2, 3), numpy.zeros(3)
        value = RemoteSubmission(stage).fold(*given)
        several = value if isinstance(value, list) else [value]
        for each in several:
            if isinstance(each, torch.Tensor) and each.requires_grad:
                each.sum().backward(retain_graph=True)
        said = f"{answers.forbidden} {[described(each) for each in several]} {several}"
    finally:
        printed = stage.close()
    return said + printed


def tried(data: bytes, folder: Path) -> Trial:
    """What is made of the reply of a process that has run the learner's tests. WireError."""
    channel = Channel(Pipe(data))
    return trial_of(channel.receive().header)


@st.composite
def conversations(draw: st.DrawFn) -> bytes:
    """What a worker says to a checker, some of it damaged."""
    error = {"error": ERROR}
    which = draw(st.sampled_from(("load", "reply", "reply", "reply", "error", "aside", "back")))
    load = draw(damaged_data(draw(st.sampled_from((LOADED, error))))) if which == "load" else LOADED
    header = draw(damaged_data(VALUES)) if which == "reply" else VALUES
    aside = draw(damaged_data(ASIDE)) if which == "aside" else ASIDE
    back = draw(damaged_data(BACK.header)) if which == "back" else BACK.header
    header = draw(damaged_data(error)) if which == "error" else header
    data = framed(load) + framed(header, DATA, aside) + framed(back, BACK.data) * 2
    return data if draw(st.integers(0, 2)) else draw(damaged_bytes([data]))


def trials() -> st.SearchStrategy[bytes]:
    """Replies of a process that has run the learner's tests."""
    return damaged_data(TRIED).map(framed) | damaged_data({"error": ERROR}).map(framed)


READERS = {
    "wire": Reader(ask, str, conversations(), (AnswerError, WireError)),
    "trial": Reader(tried, Trial, trials(), (WireError, Closed)),
}
