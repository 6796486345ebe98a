"""How much time one submission may use, over everything that is done for it."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable

_RECENT = 0.005  # seconds: asking for the CPU time of all processes takes longer than a call


class Spent(Exception):
    """The submission has used up its time."""


class Budget:
    """The time for one submission, counted from now.

    It counts wall time or CPU time, whichever is more; `processor` returns the CPU time that this
    process and its workers have used so far. With more `patience` wall time counts that many times
    less, so that a busy machine takes longer and gets as far. Nothing is interrupted: a call to a
    worker waits at most for the time that is `left`, and this process checks between its own steps,
    each of which has its own limit.
    """

    def __init__(
        self,
        limit: float = math.inf,
        processor: Callable[[], float] = time.process_time,
        patience: float = 1.0,
    ) -> None:
        self._limit = limit
        self._processor = processor
        self._patience = patience
        self._began = time.monotonic()
        self._before = processor()
        self._looked = 0.0, self._began  # the CPU time used so far, and when that was looked up

    def counted_by(self, processor: Callable[[], float]) -> Budget:
        """The same budget in another process, where `processor` counts."""
        other = copy.copy(self)
        other._processor = processor
        return other

    @property
    def used(self) -> float:
        """The seconds used so far; CPU time as it was a moment ago."""
        now = time.monotonic()
        used, looked = self._looked
        if now > looked + _RECENT:
            used = self._processor() - self._before
            self._looked = used, now
        return max((now - self._began) / self._patience, used)

    @property
    def left(self) -> float:
        """The seconds left; zero or less if all are used."""
        return self._limit - self.used

    @property
    def is_spent(self) -> bool:
        """Whether no time is left."""
        return self.left <= 0

    @property
    def over(self) -> str:
        """The message about a check for which no time is left."""
        return (
            f"Not checked: your submission has used up all of its {self._limit:g} seconds. Look "
            "for an endless loop or for code that is very slow; on a busy machine, try again"
        )

    def expect_some(self) -> None:
        """Raise Spent if no time is left."""
        if self.is_spent:
            raise Spent
