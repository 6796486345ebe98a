"""What tests wait for, and the processes that they look at."""

import time
from collections.abc import Callable, Iterable

import psutil


def until(happens: Callable[[], object], seconds: float = 60) -> bool:
    """Whether it happens in that time: a busy machine takes its time."""
    end = time.monotonic() + seconds
    while not (found := happens()) and time.monotonic() < end:
        time.sleep(0.01)
    return bool(found)


def descendants(pid: int) -> set[int]:
    """Every process below `pid`."""
    try:
        return {each.pid for each in psutil.Process(pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def alive(pids: Iterable[int]) -> set[int]:
    """Those that run: one that nobody has reaped does not."""
    return set(filter(_runs, pids))


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
