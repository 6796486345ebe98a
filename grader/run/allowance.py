"""What the calls of one stage may take: time, bytes, and the patience for one answer."""

from __future__ import annotations

import time
from collections.abc import Callable

from grader.run.budget import Budget
from grader.run.failures import Timeout
from grader.run.worker.wire import Frame, WireError
from grader.types.course import Limits

_LEAST = 0.01  # seconds in which nothing can be answered
_SHORTEST_PATIENCE = 0.5  # seconds; after time-outs the limit of a call shrinks to no less
_BUSY_FACTOR = 4  # a call may take so many times its limit while others have the machine
_SHORT = 0.05  # seconds that count though the worker may have waited: it saves a look
_REPLIES_CAP = 256 << 20  # bytes of all replies of one stage: who sends more wants to slow us


class Due:
    """When an answer is due, in `seconds` from now, for a deadline that moves on.

    `waited` says how long the worker was ready to run while other processes had the machine; that
    time is not counted. An answer that sleeps is waited for as long as one that works. In no case
    is it later than in `most` seconds.
    """

    def __init__(self, seconds: float, most: float, waited: Callable[[], float]) -> None:
        self._seconds = seconds
        self._most = min(most, _BUSY_FACTOR * seconds)
        self._all_waited = waited
        self._before = waited()
        self._waited = 0.0
        self._began = time.monotonic()
        self._moment = self._began + min(seconds, self._most)

    def __call__(self) -> float:
        """The moment, which is looked at again once it has come."""
        if time.monotonic() >= self._moment:
            self._moment = self._began + min(self._seconds + self._look(), self._most)
        return self._moment

    @property
    def used(self) -> float:
        """The seconds that count so far."""
        passed = time.monotonic() - self._began
        return passed if passed < _SHORT else max(passed - self._look(), 0)

    def _look(self) -> float:
        """How long the worker has waited by now; one that has ended does not tell any more."""
        self._waited = max(self._waited, self._all_waited() - self._before)
        return self._waited


class Patience:
    """The seconds that an answer may take, `limit` or fewer: half as many after each time-out."""

    def __init__(self, limit: float, seconds: float | None = None) -> None:
        self._limit = limit
        self.seconds = limit if seconds is None else seconds

    def end(self, what: str) -> Timeout:
        """The message about something that did not come; the next wait is shorter."""
        seconds = self.seconds
        self.seconds = max(_SHORTEST_PATIENCE, seconds / 2)
        why = f", the limit of {self._limit:g} halved each time" if seconds < self._limit else ""
        return too_long(what, seconds, why)


class Allowance:
    """What is left to the calls of one stage, whichever worker answers them."""

    def __init__(self, limits: Limits, budget: Budget) -> None:
        self._limits = limits
        self.budget = budget
        self.for_call = Patience(limits.call_seconds)
        self.for_tests = Patience(limits.load_seconds)
        self._spent = 0.0
        self._received = 0

    @property
    def stage_left(self) -> float:
        """The seconds that are left to the stage."""
        return self._limits.stage_seconds - self._spent

    def expect_some(self) -> None:
        """Raises Timeout if nothing is left to the stage or to the submission."""
        if self.stage_left < _LEAST:
            seconds = self._limits.stage_seconds
            raise Timeout(
                f"This stage has used up its {seconds:g} seconds: a busy machine (try again) or an "
                "endless loop?"
            )
        if self.budget.is_spent:
            raise Timeout(self.budget.over)

    def spend(self, seconds: float) -> None:
        """Count the seconds of a request."""
        self._spent += seconds

    def count(self, reply: Frame) -> None:
        """Count the bytes of a reply. Raises WireError if they are too many in all."""
        self._received += reply.size
        if self._received > _REPLIES_CAP:
            raise WireError("all its answers together are too large")

    def out_of_stage(self, what: str, seconds: float) -> Timeout:
        """The message about something that used up the stage's remaining seconds."""
        why = f", all that was left of this stage's {self._limits.stage_seconds:g}"
        return too_long(what, seconds, why)


def too_long(what: str, seconds: float, why: str) -> Timeout:
    """The message about something that took too long, maybe not by the learner's fault."""
    count = f"{round(seconds, 2):g} second" + ("" if seconds == 1 else "s")
    return Timeout(f"{what} in {count}{why}: a busy machine (try again) or an endless loop?")
