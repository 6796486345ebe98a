"""Several processes at the same work, each forked off a process that is warm already.

They are ours and trusted, so what passes between them is pickled; what a submission's process says
never is.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Protocol, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")
_Asked = TypeVar("_Asked", contravariant=True)
_Given = TypeVar("_Given", covariant=True)

_FAREWELL = 2.0  # seconds
_MOST = 1000  # jobs of one process: Python gives back little of what a thousand have left in it


class Work(Protocol[_Asked, _Given]):
    """Does one job after the other, in a forked process; `close` gives up what it holds."""

    def __call__(self, job: _Asked, /) -> _Given:
        """The result of one job."""

    def close(self) -> None:
        """There are no more jobs."""


def can_fork(device: str) -> bool:
    """Whether a process that uses this device may be forked: none that uses a GPU can."""
    return sys.platform == "linux" and device == "cpu"


def give_back_memory() -> None:
    """Give the system what this process has freed; C's library would keep most of it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


class LaneLost(Exception):
    """A process of our own has ended in the middle of a job: it was killed, or memory ran out."""


def in_lanes(
    count: int,
    jobs: Iterable[Job],
    prepare: Callable[[], Work[Job, Result]],
    most: int = _MOST,
) -> Iterator[tuple[Job, Result | Exception]]:
    """Each job with its result, or with the exception that it ended with, as they come.

    `prepare` is called here, before each of `count` processes is forked to do what it gives. A
    process that is lost is replaced, and its job ends as LaneLost; one that has done `most` jobs is
    replaced too. Only one thread may be running: no other lives on in a forked process.
    """
    left = iter(jobs)
    lanes: dict[Connection, _Lane[Job]] = {}

    def open_one() -> None:
        for job in islice(left, 1):
            lane = _Lane(job, prepare(), list(lanes))
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
                    result = LaneLost(f"the process that was at it has ended: {lane.end()}")
                    open_one()
                else:
                    lane.done += 1
                    if lane.done < most and lane.take(left):
                        lanes[connection] = lane
                    else:
                        lane.end()
                        open_one()
                yield job, result
    finally:
        for lane in lanes.values():
            lane.end()


class _Lane(Generic[Job]):
    """One process, the job that it has, and how many it has done."""

    def __init__(self, job: Job, work: Work[Job, Any], others: Sequence[Connection]) -> None:
        self.done = 0
        self._work = work
        self.connection, theirs = multiprocessing.Pipe()
        fork = multiprocessing.get_context("fork")
        inherited = [self.connection, *others]
        self._process = fork.Process(target=_serve, args=(theirs, inherited, work), daemon=True)
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
        with suppress(BrokenPipeError):  # it is lost: that shows when its answer is waited for
            self.connection.send(job)

    def end(self) -> str:
        """End the process; how it ended."""
        self.connection.close()
        self._work.close()
        self._process.join(_FAREWELL)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        code = self._process.exitcode
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _serve(connection: Connection, others: Sequence[Connection], work: Work[Any, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends this one
    for other in others:
        other.close()
    with suppress(EOFError, BrokenPipeError):
        while True:
            job = connection.recv()
            try:
                result = work(job)
            except Exception as error:  # noqa: BLE001 - it is told in the parent
                result = error
            connection.send(result)
