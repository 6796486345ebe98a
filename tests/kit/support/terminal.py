"""A terminal on which a command is typed: keys, the screen, and how the terminal is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.support.checkout import ROOT

if sys.platform != "win32":
    import fcntl
    import struct
    import termios

LONGEST = 60.0  # for what takes a second, on a busy machine
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")
LEAVES_THE_SCREEN = "\x1b[?1049l"
LAST = "\0"


class Terminal:
    """`grade ...` in this folder, in a `with`, on a terminal of 80 x 24."""

    def __init__(self, root: Path, *words: str, **environment: str) -> None:
        if sys.platform == "win32":
            pytest.skip("needs a pseudo-terminal")
        self.root = root
        self._ours, theirs = os.openpty()
        self.resize(80, 24)
        self.before = termios.tcgetattr(theirs)
        self._terminal = theirs
        self.process = subprocess.Popen(
            [sys.executable, "-m", "grader", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=root,
            env={
                **{k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR")},
                "PYTHONPATH": str(ROOT),
                "TERM": "xterm-256color",
                "LANG": "C.UTF-8",
                "EDITOR": f"{sys.executable} {root / 'editor.py'}",
                **environment,
            },
            start_new_session=True,
            preexec_fn=self._own_terminal,
        )
        self._output = ""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _own_terminal(self) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._ours, 65536)
            except OSError:
                data = b""
            if not data:
                return
            with self._changed:
                self._output += data.decode("utf-8", "replace")
                self._changed.notify_all()

    @property
    def raw(self) -> str:
        return self._output

    @property
    def screen(self) -> list[str]:
        """The lines of what was drawn last."""
        drawn = self._output.split("\x1b[H")[-1]
        return CODES.sub("", drawn).replace("\r", "").split("\n")

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def types(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def sees(self, *words: str) -> list[str]:
        """The screen, once all of these words are on it."""

        def there() -> bool:
            shown = "\n".join(self.screen)
            return all(word in shown for word in words)

        self.until(there, f"not on the screen: {words}")
        return self.screen

    def has_shown(self, *words: str) -> None:
        """Wait until all of these words have been on one screen, perhaps no more on the last."""

        def there() -> bool:
            screens = CODES.sub("", self._output.replace("\x1b[H", "\f")).split("\f")
            return any(all(word in screen for word in words) for screen in screens)

        self.until(there, f"has not been on the screen: {words}")

    def until(self, holds: Callable[[], bool], otherwise: str) -> None:
        end = time.monotonic() + LONGEST
        with self._changed:
            while not holds():
                if not self._changed.wait(max(0.0, end - time.monotonic())):
                    pytest.fail(otherwise + "\n" + "\n".join(self.screen))

    def writes(self, slug: str, text: str) -> None:
        file = self.root / "exercises" / f"{slug}.py"
        new = file.with_suffix(".tmp")
        new.write_text(text, encoding="utf-8")
        new.replace(file)

    def ends(self) -> int:
        """The exit code, once all that the command has written is here."""
        code = self.process.wait(LONGEST)
        os.write(self._terminal, LAST.encode())  # it comes after all that was written before
        self.until(lambda: LAST in self.raw, "the last words are still on their way")
        return code

    def is_as_before(self) -> None:
        """Once the command has ended: the terminal is as it was, and no exception was shown."""
        assert termios.tcgetattr(self._terminal) == self.before
        assert self.raw.count("\x1b[?1049h") == self.raw.count(LEAVES_THE_SCREEN) == 1
        assert "Traceback" not in self.raw

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *how: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._terminal)
        self._reader.join(LONGEST)  # else it reads on: the next terminal may get the same number
        os.close(self._ours)
