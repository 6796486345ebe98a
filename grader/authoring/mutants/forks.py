"""Runs jobs in processes that are forked from a warm one: a job may hang, die or break things.

This is only for an author's own code, which is trusted, and only for Linux, where a process with
torch may be forked. Submissions run in workers.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

from grader.authoring.mutants.types import Fate
from grader.run.lanes import LaneLost, Work, in_lanes

Job = TypeVar("Job")

_WALL = 10  # on a busy machine, a job may take this many times its CPU time
_LATE = (signal.SIGPROF, signal.SIGALRM)  # what ends a job that took too long


@dataclass(frozen=True)
class Bounds:
    """The limits of one job: seconds of CPU time, and bytes beyond those already in use."""

    seconds: float
    memory: int


def in_forks(
    jobs: Sequence[Job],
    work: Callable[[Job], Any],
    bounds: Bounds,
    *,
    lanes: int = 1,
    most: int = 1,
) -> Generator[tuple[Job, Any], None, None]:
    """Each job with the result of `work`, or with its fate if it has none, as they finish.

    `work` runs in a fork of this process, and each fork does up to `most` jobs. There are `lanes`
    forks at once. Closing the iterator ends them all. This process must have only one thread,
    because a fork has no other.
    """
    if threading.active_count() != 1:
        raise RuntimeError("a process with several threads cannot be forked safely")

    def fork() -> Work[int, Any]:
        return _Fork(lambda number: work(jobs[number]), bounds), lambda: None

    # Numbers are sent, because no job can be: its fork has them all.
    with closing(in_lanes(lanes, range(len(jobs)), fork, most=most, farewell=0)) as done:
        for number, result in done:
            if isinstance(result, Exception):
                is_late = isinstance(result, LaneLost) and -result.code in _LATE
                result = Fate.TIMED_OUT if is_late else Fate.CRASHED
            yield jobs[number], result


@dataclass(eq=False)
class _Fork:
    """Does one job after the other, each within the bounds, and prints nothing."""

    work: Callable[[int], Any]
    bounds: Bounds
    has_begun: bool = False

    def __call__(self, number: int) -> Any:
        if not self.has_begun:
            self._begin()
        self._limit()
        try:
            return self.work(number)
        finally:
            self._limit_time(0)

    def _begin(self) -> None:
        self.has_begun = True
        gc.freeze()  # a collection would touch, and so copy, all shared memory
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def _limit(self) -> None:
        """Let the system end this process if the next job exceeds the bounds."""
        self._limit_time(self.bounds.seconds)
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        most_bytes = pages * os.sysconf("SC_PAGE_SIZE") + self.bounds.memory
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, hard))

    def _limit_time(self, seconds: float) -> None:
        """End this process if the next such call comes too late; with 0 seconds it never does."""
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds * _WALL)
