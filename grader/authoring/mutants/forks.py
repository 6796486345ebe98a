"""Runs each job in its own process, forked from a warm one: it may hang, die or break things.

This is only for an author's own code, which is trusted, and only for Linux, where a process with
torch may be forked. Submissions run in workers.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from grader.run.lanes import uninterrupted

Job = TypeVar("Job")

_WALL = 10  # on a busy machine, a job may take this many times its CPU time
_CHUNK = 1 << 16


class Lost(Enum):
    """Why a job gave no result."""

    TIMED_OUT = "timed out"
    CRASHED = "crashed"


@dataclass(frozen=True)
class Bounds:
    """The limits of one job: seconds of CPU time, and bytes beyond those already in use."""

    seconds: float
    memory: int


@dataclass
class _Fork:
    """One process and its output so far."""

    job: Any
    pid: int
    deadline: float
    output: bytes = b""


def in_forks(
    jobs: Iterable[Job], work: Callable[[Job], Any], bounds: Callable[[], Bounds], *, lanes: int = 1
) -> Generator[tuple[Job, Any], None, None]:
    """Each job with the result of `work`, or with how it was lost, in the order of completion.

    `work` runs in a fork of this process, made when the job starts; its result must be JSON. There
    are `lanes` forks at once. Closing the iterator ends them all. This process must have only one
    thread, because a fork has no other.
    """
    if threading.active_count() != 1:
        raise RuntimeError("a process with several threads cannot be forked safely")
    left = iter(jobs)
    running: dict[int, _Fork] = {}
    poll = select.poll()
    try:
        while True:
            while len(running) < lanes:
                job = next(left, None)
                if job is None:
                    break
                with uninterrupted():  # Python drops a Ctrl-C that comes while it forks
                    end, fork = _forked(job, work, bounds())
                    running[end] = fork
                    poll.register(end, select.POLLIN)
            if not running:
                return
            first = min(fork.deadline for fork in running.values()) - time.monotonic()
            ready = poll.poll(max(0.0, first) * 1000 + 1)
            for end, _ in ready:
                fork = running[end]
                chunk = os.read(end, _CHUNK)
                fork.output += chunk
                if not chunk:
                    poll.unregister(end)
                    del running[end]
                    os.close(end)
                    yield fork.job, _result(fork)
            now = time.monotonic()
            for end, fork in list(running.items()):
                if now > fork.deadline:
                    poll.unregister(end)
                    del running[end]
                    os.close(end)
                    _end(fork)
                    yield fork.job, Lost.TIMED_OUT
    finally:
        for end, fork in running.items():
            os.close(end)
            _end(fork)


def _forked(job: Job, work: Callable[[Job], Any], bounds: Bounds) -> tuple[int, _Fork]:
    ours, theirs = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _be_fork(theirs, job, work, bounds)
    os.close(theirs)
    return ours, _Fork(job, pid, time.monotonic() + bounds.seconds * _WALL)


def _be_fork(end: int, job: Job, work: Callable[[Job], Any], bounds: Bounds) -> None:
    """Do the job and exit, without running any of the parent's exit code."""
    code = 1
    try:
        gc.disable()  # a collection would touch, and so copy, all shared memory
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, which ends us
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        _limit(bounds)
        output = json.dumps(work(job)).encode()
        while output:
            output = output[os.write(end, output) :]
        code = 0
    except BaseException:  # noqa: BLE001 - the parent sees that the job is lost
        pass
    finally:
        os._exit(code)


def _limit(bounds: Bounds) -> None:
    """Let the system end this process if it exceeds the bounds."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, bounds.seconds)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + bounds.memory
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _result(fork: _Fork) -> Any:
    """The result of the ended process, or how it was lost."""
    _, status = os.waitpid(fork.pid, 0)
    if os.WIFSIGNALED(status):
        is_late = os.WTERMSIG(status) == signal.SIGPROF
        return Lost.TIMED_OUT if is_late else Lost.CRASHED
    with suppress(ValueError):
        return json.loads(fork.output)
    return Lost.CRASHED


def _end(fork: _Fork) -> None:
    with suppress(ProcessLookupError):
        os.kill(fork.pid, signal.SIGKILL)
    os.waitpid(fork.pid, 0)
