"""Answers a check's requests with our own functions, in this process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from grader.run.facts import ForbiddenCall
from grader.run.failures import Timeout
from grader.run.stopping import Stopped, stopped_after
from grader.run.worker.bench import Bench
from grader.run.worker.wire import Frame
from grader.types.course import Limits

Result = TypeVar("Result")


def answered_here(bench: Bench, request: Frame) -> Frame:
    """A bench's reply in this process, whose user may press Ctrl-C. Raises KeyboardInterrupt."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they would tell the learner about our own code
        reply = bench.answer(request)
    error = reply.header.get("error")
    if error is not None and error.get("type") == "KeyboardInterrupt":
        raise KeyboardInterrupt  # our own functions never raise it
    return reply


class LocalAnswers:
    """Our own functions, in this process: the solutions and the known misconceptions.

    With `limits`, a call that does not end is stopped and no other one starts; `hangs` says so.
    """

    forbidden: tuple[ForbiddenCall, ...] = ()
    over = ""
    hangs = ""

    def __init__(self, find: Callable[[str], Any], limits: Limits | None = None) -> None:
        self._bench = Bench(find)
        self._limits = limits

    def begin(self) -> None:
        """Forget every object and call."""
        self._bench.reset()

    def need(self, name: str) -> None:
        """Nothing to do: every function is here."""

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

    def tried(self, request: Frame) -> Frame:
        """The reply to one request. Raises KeyboardInterrupt and Timeout."""
        return self.answer(request)

    def side_by_side(
        self, do: Callable[[Frame], Result], requests: Sequence[Frame]
    ) -> Iterator[Result]:
        """What `do` makes of each request, one after the other."""
        return map(do, requests)

    def close(self) -> str:
        """Nothing to close."""
        return ""
