"""Stops code of our own in this process that runs too long, and delays Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE = 4  # how many times longer by the clock, for code that waits
_BETWEEN = 1.0  # seconds
_MOST_OF_IT = 0.8  # share of the seconds: no code has a core all the time


class Stopped(BaseException):
    """Our own code did not finish in time."""


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise Stopped if the Python code in the block takes longer, on systems with such timers.

    On a busy machine code waits for a CPU core, so it may take up to `_PATIENCE` times as long
    until this process has used `seconds` of CPU time. Inside another such block, the outer block's
    time goes on.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() != threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        has_time = time.monotonic() - began < _PATIENCE * seconds
        if has_time and time.process_time() - used < _MOST_OF_IT * seconds:
            return
        raise Stopped(f"did not end within {seconds:g} s")

    began, used = time.monotonic(), time.process_time()
    left, again = signal.setitimer(signal.ITIMER_REAL, 0)
    before = signal.signal(signal.SIGALRM, stop)
    # It fires again if the code goes on, but not while the first Stopped is put into words.
    signal.setitimer(signal.ITIMER_REAL, seconds, max(seconds / 4, _BETWEEN))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            left -= time.monotonic() - began
            signal.setitimer(signal.ITIMER_REAL, left if left > 0 else again, again)
            if left <= 0:  # at once: the next block inside the outer one would stop the timer again
                signal.raise_signal(signal.SIGALRM)


@contextmanager
def first_interrupt() -> Iterator[Callable[[], bool]]:
    """Tells whether Ctrl-C was pressed in the block; only a second press interrupts it.

    An OSError after a press counts as an interrupt: Ctrl-C also ends processes that are starting,
    and this one may be speaking to them. Nothing changes in another thread, or where Ctrl-C has a
    handler other than Python's own.
    """
    is_main = threading.current_thread() == threading.main_thread()
    is_usual = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    pressed = False

    def press(*_: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    if is_usual:
        signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed
    except OSError:
        if pressed:
            raise KeyboardInterrupt from None
        raise
    finally:
        if is_usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
