"""Runs each job in its own process, forked from a warm one: it may hang, die or break things.

This is only for an author's own code, which is trusted, and only for Linux, where a process with
torch may be forked. Submissions run in workers.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

from grader.authoring.mutants.types import Fate
from grader.run.lanes import LaneLost, in_lanes

Job = TypeVar("Job")

_WALL = 10  # on a busy machine, a job may take this many times its CPU time
_LATE = (signal.SIGPROF, signal.SIGALRM)  # what ends a job that took too long


@dataclass(frozen=True)
class Bounds:
    """The limits of one job: seconds of CPU time, and bytes beyond those already in use."""

    seconds: float
    memory: int


def in_forks(
    jobs: Iterable[Job], work: Callable[[Job], Any], bounds: Bounds, *, lanes: int = 1
) -> Generator[tuple[Job, Any], None, None]:
    """Each job with the result of `work`, or with its fate if it has none, as they finish.

    `work` runs in a fork of this process, made when the job starts. There are `lanes` forks at
    once. Closing the iterator ends them all. This process must have only one thread, because a fork
    has no other.
    """
    if threading.active_count() != 1:
        raise RuntimeError("a process with several threads cannot be forked safely")
    started: dict[int, Job] = {}  # by number: no job can be sent, but its fork finds it here

    def numbers() -> Iterator[int]:
        for number, job in enumerate(jobs):
            started[number] = job
            yield number

    def fork() -> _Fork:
        return _Fork(lambda number: work(started[number]), bounds)

    with closing(in_lanes(lanes, numbers(), fork, most=1, farewell=0)) as done:
        for number, result in done:
            if isinstance(result, Exception):
                is_late = isinstance(result, LaneLost) and -result.code in _LATE
                result = Fate.TIMED_OUT if is_late else Fate.CRASHED
            yield started.pop(number), result


@dataclass(frozen=True)
class _Fork:
    """Does one job within its bounds, and prints nothing."""

    work: Callable[[int], Any]
    bounds: Bounds

    def __call__(self, number: int) -> Any:
        gc.disable()  # a collection would touch, and so copy, all shared memory
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        self._limit()
        return self.work(number)

    def _limit(self) -> None:
        """Let the system end this process if it exceeds the bounds."""
        seconds = self.bounds.seconds
        for timer, late, most in (
            (signal.ITIMER_PROF, signal.SIGPROF, seconds),
            (signal.ITIMER_REAL, signal.SIGALRM, seconds * _WALL),
        ):
            signal.signal(late, signal.SIG_DFL)
            signal.setitimer(timer, most)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        most_bytes = pages * os.sysconf("SC_PAGE_SIZE") + self.bounds.memory
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))

    def close(self) -> None:
        """Nothing to close."""
