"""Shares one kind of work among processes forked from this one, which has loaded all it needs.

They run our own trusted code, so they exchange pickles; what a submission's process sends is never
unpickled.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import RawArray
from typing import Any, Generic, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")
# A function that does one job after another in a forked process, and one that releases here what
# that process used.
Work = tuple[Callable[[Job], Result], Callable[[], None]]

_FAREWELL = 2.0  # seconds
_PR_SET_PDEATHSIG = 1  # of linux/prctl.h
_MOST = 1000  # jobs of one process: Python does not return the memory of a thousand jobs


def can_fork(device: str) -> bool:
    """Whether a process that uses this device may be forked: not if it uses a GPU."""
    return sys.platform == "linux" and device == "cpu"


def usable_cores() -> int:
    """How many CPU cores this process may use."""
    ours = getattr(os, "sched_getaffinity", None)  # exists only on Linux
    return len(ours(0)) if ours is not None else os.cpu_count() or 1


def give_back_memory() -> None:
    """Return freed memory to the system; the C library would keep most of it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


class SharedSeconds:
    """The CPU seconds of `count` processes, of which each counts its own.

    Make it before they are forked.
    """

    def __init__(self, count: int) -> None:
        self._used = RawArray("d", count)

    def counted(self, number: int, own: Callable[[], float]) -> Callable[[], float]:
        """Returns what all have used together, for the process with this number, from 0."""

        def used() -> float:
            self._used[number] = own()
            return math.fsum(self._used)

        return used


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the block ends.

    Python would drop a Ctrl-C that comes during a fork: what it runs after a fork cannot raise.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


class LaneLost(Exception):
    """A process of our own ended in the middle of a job: something killed it, or memory ran out.

    `code` is its exit code, or below 0 the signal that ended it.
    """

    def __init__(self, words: str, code: int = 0) -> None:
        super().__init__(words)
        self.code = code


def in_lanes(
    count: int,
    jobs: Iterable[Job],
    prepare: Callable[[], Work[Job, Result]],
    most: int = _MOST,
    farewell: float = _FAREWELL,
) -> Generator[tuple[Job, Result | Exception], None, None]:
    """Each job with its result, or with the exception that ended it, in the order of finishing.

    `prepare` is called in this process before each of the `count` processes is forked; what it
    returns does the jobs. A process that ends early is replaced, and the result of its job is
    LaneLost. A process that has done `most` jobs is replaced, too. Each has `farewell` seconds to
    end by itself. Only one thread may be running here: no other thread survives a fork.
    """
    left = iter(jobs)
    lanes: dict[Connection, _Lane[Job]] = {}

    def open_one() -> None:
        for job in islice(left, 1):
            lane = _Lane(job, prepare(), list(lanes), farewell)
            lanes[lane.connection] = lane

    try:
        for _ in range(count):
            open_one()
        while lanes:
            for connection in wait(list(lanes)):
                assert isinstance(connection, Connection)
                lane = lanes.pop(connection)
                job = lane.job
                try:
                    result: Result | Exception = connection.recv()
                except (EOFError, OSError):
                    code = lane.end() or 0
                    how = f"signal {-code}" if code < 0 else f"exit code {code}"
                    result = LaneLost(f"the process that was doing it has ended: {how}", code)
                else:
                    lane.done += 1
                    if lane.done < most and lane.take(left):
                        lanes[connection] = lane
                    else:
                        lane.end()
                yield job, result
                if connection not in lanes:
                    open_one()
    finally:
        for lane in lanes.values():
            lane.end()


class _Lane(Generic[Job]):
    """One process, its current job, and how many it has done."""

    def __init__(
        self, job: Job, work: Work[Job, Any], others: Sequence[Connection], farewell: float
    ) -> None:
        self.done = 0
        self._farewell = farewell
        do, self._release = work
        self.connection, theirs = multiprocessing.Pipe()
        fork = multiprocessing.get_context("fork")
        inherited = [self.connection, *others]
        self._process = fork.Process(target=_serve, args=(theirs, inherited, do), daemon=True)
        with uninterrupted():
            self._process.start()
        theirs.close()
        self._give(job)

    def take(self, jobs: Iterator[Job]) -> bool:
        """Take the next job, if there is one."""
        for job in jobs:
            self._give(job)
            return True
        return False

    def _give(self, job: Job) -> None:
        self.job = job
        with suppress(BrokenPipeError):  # it has ended: waiting for its answer will show that
            self.connection.send(job)

    def end(self) -> int | None:
        """End the process; returns its exit code."""
        self.connection.close()
        self._release()
        self._process.join(self._farewell)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        return self._process.exitcode


def _serve(
    connection: Connection, others: Sequence[Connection], do: Callable[[Any], object]
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets the Ctrl-C, and ends this one
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # If the parent is killed, this process must not wait for the end of its job.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for other in others:
        other.close()
    with suppress(EOFError, ConnectionError):
        while True:
            job = connection.recv()
            try:
                result = do(job)
            except Exception as error:  # noqa: BLE001 - the parent raises it
                result = error
            connection.send(result)
