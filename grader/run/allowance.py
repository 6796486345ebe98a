"""What the calls of one stage may use: time, bytes, and how long to wait for one answer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from grader.run.budget import Budget
from grader.run.failures import Timeout
from grader.run.worker.wire import Frame, WireError
from grader.types.course import Limits

_LEAST = 0.01  # seconds: too short for any answer
_SHORTEST_PATIENCE = 0.5  # seconds; timeouts never shrink a call's limit below this
_BUSY_FACTOR = 4  # a call may take this many times its limit on a busy machine
_SHORT = 0.05  # seconds; a shorter call is not worth a look at how long it waited
_PERHAPS = "a busy machine (try again), slow code or an endless loop"
_RECENT = 0.05  # seconds
_REPLIES_CAP = 256 << 20  # bytes of all replies of one stage; only an attacker sends more


class Waited:
    """How long a worker was ready to run while other processes had the CPU, as `look` finds it."""

    def __init__(self, look: Callable[[], float]) -> None:
        self._look = look
        self._found = 0.0
        self._stale = -math.inf

    def __call__(self) -> float:
        """The seconds so far."""
        self._found, self._stale = self._look(), time.monotonic() + _RECENT
        return self._found

    @property
    def recently(self) -> float:
        """The seconds as they were a moment ago: a look costs more than a short call."""
        return self._found if time.monotonic() < self._stale else self()


class Due:
    """The moment by which an answer must arrive; later if the worker had to wait for a CPU core.

    The worker has `seconds`. The time that it has `waited` does not count; time asleep does count.
    The moment never moves beyond `most` seconds from now.
    """

    def __init__(self, seconds: float, most: float, waited: Waited) -> None:
        self._seconds = seconds
        self._most = min(most, _BUSY_FACTOR * seconds)
        self._all_waited = waited
        self._before = waited.recently
        self._waited = 0.0
        self._began = time.monotonic()
        self._moment = self._began + min(seconds, self._most)

    def __call__(self) -> float:
        """The deadline; when it is reached, it is computed again."""
        if time.monotonic() >= self._moment:
            self._moment = self._began + min(self._seconds + self._look(), self._most)
        return self._moment

    @property
    def used(self) -> float:
        """The seconds that count so far."""
        passed = time.monotonic() - self._began
        return passed if passed < _SHORT else max(passed - self._look(), 0)

    def _look(self) -> float:
        """How long the worker has waited so far; a worker that has ended reports nothing more."""
        self._waited = max(self._waited, self._all_waited() - self._before)
        return self._waited


class Patience:
    """How many seconds an answer may take: at most `limit`, and half as many after each timeout."""

    def __init__(self, limit: float, seconds: float | None = None) -> None:
        self._limit = limit
        self.seconds = limit if seconds is None else seconds

    def end(self, what: str) -> Timeout:
        """The error for an answer that did not arrive; the next wait is shorter."""
        seconds = self.seconds
        self.seconds = max(_SHORTEST_PATIENCE, seconds / 2)
        why = f", the limit of {self._limit:g} halved each time" if seconds < self._limit else ""
        return too_long(what, seconds, why)


class Allowance:
    """What the calls of one stage may still use, whichever worker answers them."""

    def __init__(self, limits: Limits, budget: Budget) -> None:
        self._limits = limits
        self.budget = budget
        self.for_call = Patience(limits.call_seconds)
        self.for_tests = Patience(limits.load_seconds)
        self._spent = 0.0
        self._received = 0

    @property
    def stage_left(self) -> float:
        """The seconds that the stage has left."""
        return self._limits.stage_seconds - self._spent

    def expect_some(self) -> float:
        """The seconds that the submission has left. Raises Timeout if it or the stage has none."""
        if self.stage_left < _LEAST:
            seconds = self._limits.stage_seconds
            raise Timeout(f"This stage has used up its {seconds:g} seconds: {_PERHAPS}?")
        left = self.budget.left
        if left <= 0:
            raise Timeout(self.budget.over)
        return left

    def spend(self, seconds: float) -> None:
        """Count the seconds that a request took."""
        self._spent += seconds

    def count(self, reply: Frame) -> None:
        """Count the bytes of a reply. Raises WireError if all replies together are too large."""
        self._received += reply.size
        if self._received > _REPLIES_CAP:
            raise WireError("all its answers together are too large")

    def out_of_stage(self, seconds: float) -> Timeout:
        """The error for tests that used up the stage's remaining seconds."""
        why = f", all that was left of this stage's {self._limits.stage_seconds:g}"
        return too_long("No end", seconds, why)


def too_long(what: str, seconds: float, why: str) -> Timeout:
    """The error for something that took too long, which may be the machine's fault."""
    count = f"{round(seconds, 2):g} second" + ("" if seconds == 1 else "s")
    return Timeout(f"{what} in {count}{why}: {_PERHAPS}?")
