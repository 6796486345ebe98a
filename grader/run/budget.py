"""What one submission may cost, over all that is done for it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Spent(Exception):
    """The submission has used up what it may cost."""


class Budget:
    """Seconds for one submission, counted from now on.

    They are seconds of wall time or of processor time, whichever are more. `processor` gives the
    processor time that this process and its workers have used so far. Nothing is interrupted: a
    call to a worker waits no longer than what is `left`, and this process looks between its own
    steps, each of which is bounded by what it is given.
    """

    def __init__(
        self, limit: float = math.inf, processor: Callable[[], float] = time.process_time
    ) -> None:
        self._limit = limit
        self._processor = processor
        self._began = time.monotonic()
        self._before = processor()

    @property
    def used(self) -> float:
        """The seconds that were used so far."""
        return max(time.monotonic() - self._began, self._processor() - self._before)

    @property
    def left(self) -> float:
        """The seconds that are left; none, or less than none, if it is spent."""
        return self._limit - self.used

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.left <= 0

    @property
    def over(self) -> str:
        """The message about a check that has no time left."""
        return (
            f"Not checked: your submission has used up all of its {self._limit:g} seconds. Look "
            "for an endless loop or for code that is very slow; on a busy machine, try again"
        )

    def expect_some(self) -> None:
        """Raises Spent if nothing is left."""
        if self.is_spent:
            raise Spent
