"""Single keys from the terminal, without waiting for Enter."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

UP, DOWN, PAGE_UP, PAGE_DOWN, ESCAPE = "up", "down", "page up", "page down", "escape"
_POLL_SECONDS = 0.05

if sys.platform == "win32":
    import msvcrt

    _CODES = {"H": UP, "P": DOWN, "I": PAGE_UP, "Q": PAGE_DOWN}
else:
    import select
    import termios
    import tty

    _SEQUENCES = {
        "\x1b[A": UP, "\x1bOA": UP, "\x1b[B": DOWN, "\x1bOB": DOWN,
        "\x1b[5~": PAGE_UP, "\x1b[6~": PAGE_DOWN, "\x1b": ESCAPE,
    }  # fmt: skip
    # Keys that send several letters; a slow line or a mouse wheel sends many keys at once.
    _KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)


class Keys:
    """Reads keys in a thread and passes each to `press`, from `__enter__` to `__exit__`.

    Ctrl-C still interrupts. The terminal's settings are restored at the end.
    """

    def __init__(self, press: Callable[[str], None]) -> None:
        self._press = press
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Keys:
        self._begin()
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Meanwhile another program, such as an editor, may use the terminal."""
        self._end()
        try:
            yield
        finally:
            self._begin()

    def _begin(self) -> None:
        if sys.platform != "win32":
            terminal = sys.stdin.fileno()
            self._found = termios.tcgetattr(terminal)
            tty.setcbreak(terminal)
            # Ctrl-Z would suspend us and leave the shell with our screen, so it is disabled.
            attributes = termios.tcgetattr(terminal)
            attributes[6][termios.VSUSP] = b"\0"
            termios.tcsetattr(terminal, termios.TCSANOW, attributes)
        self._stop.clear()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _end(self) -> None:
        self._stop.set()
        self._thread.join()
        if sys.platform != "win32":
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._found)

    if sys.platform == "win32":

        def _read(self) -> None:
            while not self._stop.wait(_POLL_SECONDS):
                while msvcrt.kbhit():
                    key = msvcrt.getwch()
                    if key in "\x00\xe0":
                        key = _CODES.get(msvcrt.getwch(), "")
                    if key:
                        self._press(ESCAPE if key == "\x1b" else key)

    else:

        def _read(self) -> None:
            terminal = sys.stdin.fileno()
            while not self._stop.is_set():
                ready, _, _ = select.select([terminal], [], [], _POLL_SECONDS)
                if not ready:
                    continue
                data = os.read(terminal, 64)
                if not data:
                    return  # the terminal is gone
                for key in _KEY.findall(data.decode("utf-8", "ignore")):
                    if len(key) == 1 or key in _SEQUENCES:
                        self._press(_SEQUENCES.get(key, key))
