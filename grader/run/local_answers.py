"""Answers a check's requests with our own functions, in this process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container
from contextlib import suppress
from typing import Any

from grader.run.answers import Answers
from grader.run.failures import Timeout
from grader.run.stopping import Stopped, stopped_after
from grader.run.worker.bench import Bench
from grader.run.worker.wire import Frame
from grader.types.course import Limits


def answered_here(bench: Bench, request: Frame) -> Frame:
    """A bench's reply in this process, whose user may press Ctrl-C. Raises KeyboardInterrupt."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they would tell the learner about our own code
        reply = bench.answer(request)
    error = reply.header.get("error")
    if error is not None and error.get("type") == "KeyboardInterrupt":
        raise KeyboardInterrupt  # our own functions never raise it
    return reply


class LocalAnswers(Answers):
    """Our own functions, in this process: the solutions and the known misconceptions.

    With `limits`, a call that does not end is stopped and no other one starts; `hangs` says so.
    """

    hangs = ""

    def __init__(self, find: Callable[[str], Any], limits: Limits | None = None) -> None:
        self._bench = Bench(find)
        self._limits = limits

    def begin(self) -> None:
        """Forget every object and call."""
        self._bench.reset()

    def answer(self, request: Frame, known: Container[bytes] = ()) -> Frame:
        """The reply to one request, with its digest, as a worker would send it.

        Raises KeyboardInterrupt, and Timeout for a call that hangs and for every later one.
        """
        if self._limits is None:
            return answered_here(self._bench, request).sealed()
        seconds = self._limits.load_seconds  # the usual limit of a call is too short here
        if not self.hangs:
            with suppress(Stopped), stopped_after(seconds):
                reply = answered_here(self._bench, request)
                if reply.header.get("error", {}).get("type") != Stopped.__name__:
                    return reply.sealed()
            target = request.target.get("function", "a call")
            self.hangs = f"hangs: {target} is stopped after {seconds:g} s"
        raise Timeout(self.hangs)
