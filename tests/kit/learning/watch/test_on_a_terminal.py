"""`grade watch` on a real terminal: keys, sizes, signals, and nothing lost by kill -9."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

import fcntl
import struct
import termios

from tests.kit.support.checkout import ROOT, TINY
from tests.kit.support.tiny import copy_tiny

LONGEST = 60.0  # for what takes a second, on a busy machine
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")
LEAVES_THE_SCREEN = "\x1b[?1049l"


class Terminal:
    """`grade watch` in a folder of its own, on a terminal of 80 x 24."""

    def __init__(self, root: Path, *words: str, kind: str = "xterm-256color") -> None:
        self.root = root
        self._ours, theirs = os.openpty()
        self.resize(80, 24)
        self.before = termios.tcgetattr(theirs)
        self._terminal = theirs
        self.process = subprocess.Popen(
            [sys.executable, "-m", "grader", "watch", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=root,
            env={
                **{k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR")},
                "PYTHONPATH": str(ROOT),
                "TERM": kind,
                "LANG": "C.UTF-8",
                "EDITOR": f"{sys.executable} {root / 'editor.py'}",
            },
            start_new_session=True,
            preexec_fn=self._own_terminal,
        )
        self._output = ""
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _own_terminal(self) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._ours, 65536)
            except OSError:
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
        return _CODES.sub("", drawn).replace("\r", "").split("\n")

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
            screens = _CODES.sub("", self._output.replace("\x1b[H", "\f")).split("\f")
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
        return self.process.wait(LONGEST)

    def is_as_before(self) -> None:
        """The terminal is left as it was, without the lines of an exception."""
        assert termios.tcgetattr(self._terminal) == self.before
        # Its last words may still be on their way when the process has ended.
        self.until(lambda: LEAVES_THE_SCREEN in self.raw, "the screen has not been left")
        assert self.raw.count("\x1b[?1049h") == self.raw.count(LEAVES_THE_SCREEN) == 1
        assert "Traceback" not in self.raw

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._terminal)
        os.close(self._ours)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return copy_tiny(tmp_path / "course").root


@pytest.fixture
def terminal(root: Path) -> Iterator[Terminal]:
    opened = Terminal(root)
    yield opened
    opened.close()


def solution(slug: str) -> str:
    return (TINY.root / "solutions" / f"{slug}.py").read_text(encoding="utf-8")


def test_the_way_of_a_learner(terminal: Terminal) -> None:
    terminal.sees("moving_average", "Nothing is written here yet.", "q quit")
    terminal.writes("moving_average", "def moving_average(values, width):\n    return values[1:]\n")
    screen = terminal.sees("failed", "✗", "look at   moving_average.py, line 2")
    assert len(screen) <= 24 and max(map(len, screen)) <= 80
    terminal.types("h")
    terminal.sees("hint 1 of 4", "Look at the example", "Press h again for the answer.")
    terminal.types("h")
    terminal.sees("hint 1 of 4, the answer", "on paper", "Press h again for the next hint.")
    terminal.types("l")
    terminal.sees("Bonus", "roughness", "1 / 6   failed")
    terminal.types("d")
    terminal.sees("+++ moving_average.py (now)", "Page Up and Down scroll")
    terminal.writes("moving_average", solution("moving_average"))
    terminal.sees("moving_average passes: 6 points.", "smooth", "Nothing is written here yet.")
    terminal.types("q")
    assert terminal.ends() == 1
    left = _CODES.sub("", terminal.raw.rpartition(LEAVES_THE_SCREEN)[2])
    assert "1 of 2 stages pass." in left and "grade watch" in left
    terminal.is_as_before()


def test_a_terminal_without_a_cursor_gets_lines(root: Path) -> None:
    terminal = Terminal(root, kind="dumb")
    try:
        terminal.sees("Each save grades the stage.", "Nothing is written")
        terminal.types("\x03")
        assert terminal.ends() == 1 and "\x1b" not in terminal.raw
    finally:
        terminal.close()


def test_keys_that_come_in_one_burst_are_told_apart(terminal: Terminal) -> None:
    terminal.sees("Nothing is written here yet.")
    terminal.types("hhl\x1b[B\x1b[Bhq")
    assert terminal.ends() == 1
    assert (
        json.loads((terminal.root / ".grade" / "progress.json").read_text("utf-8"))["stages"][
            "moving_average"
        ]["rungs"]
        == 2
    )


@pytest.mark.slow
def test_a_loop_is_suspected_before_the_time_is_up(terminal: Terminal) -> None:
    terminal.sees("Nothing is written here yet.")
    terminal.writes("moving_average", "def moving_average(values, width):\n    while True: pass\n")
    terminal.has_shown("is the machine busy, or is there an endless loop?", "grading, 1 s")
    terminal.sees("No answer in ", "call      moving_average(", "line 2: while True: pass")


def test_what_the_code_prints_and_a_deleted_file_are_told(terminal: Terminal) -> None:
    terminal.sees("Nothing is written here yet.")
    terminal.writes(
        "moving_average",
        "def moving_average(values, width):\n    print('width is', width)\n    return values\n",
    )
    terminal.sees("Your code printed", "width is 2")
    (terminal.root / "exercises" / "moving_average.py").unlink()
    terminal.sees("`grade reset moving_average` restores it")


def test_all_done_is_exit_code_0_and_tomorrow_it_is_still_known(root: Path) -> None:
    for slug in ("moving_average", "smooth"):
        (root / "exercises" / f"{slug}.py").write_text(solution(slug), encoding="utf-8")
    today = Terminal(root)
    today.sees("roughness", "2 of 2 stages, 10 of 10 points")
    today.types("q")
    assert today.ends() == 0
    today.close()
    tomorrow = Terminal(root)
    tomorrow.sees("roughness", "2 of 2 stages, 10 of 10 points")
    tomorrow.types("q")
    assert tomorrow.ends() == 0
    tomorrow.close()


def test_the_terminal_is_left_as_it_was(terminal: Terminal) -> None:
    terminal.sees("Nothing is written here yet.")
    terminal.types("\x03")  # Ctrl-C
    assert terminal.ends() == 1
    terminal.is_as_before()


def test_every_size_is_filled_and_not_exceeded(terminal: Terminal) -> None:
    terminal.sees("Nothing is written here yet.")
    terminal.writes("moving_average", "def moving_average(values, width):\n    return values[1:]\n")
    terminal.sees("failed")
    for width, height in [(120, 40), (60, 16), (40, 12), (20, 5)]:
        seen = len(terminal.raw)
        terminal.resize(width, height)
        os.killpg(terminal.process.pid, signal.SIGWINCH)

        def fits(seen: int = seen, width: int = width, height: int = height) -> bool:
            screen = terminal.screen
            drawn = "\x1b[H" in terminal.raw[seen:]
            return drawn and len(screen) <= height and max(map(len, screen)) <= width

        terminal.until(fits, f"not drawn in {width} x {height}")
        time.sleep(0.6)  # two ticks: whatever was drawn for the old size is over
        terminal.until(fits, f"not drawn in {width} x {height}")
        assert terminal.process.poll() is None


def test_an_editor_gets_the_terminal_and_gives_it_back(terminal: Terminal) -> None:
    (terminal.root / "editor.py").write_text(
        "import sys, time\nprint('EDITING', sys.argv[1:], input('> '))\n", encoding="utf-8"
    )
    terminal.sees("Nothing is written here yet.")
    terminal.types("e")
    terminal.until(lambda: "> " in terminal.raw.rpartition(LEAVES_THE_SCREEN)[2], "no editor")
    terminal.types("hello q\n")  # all of it goes to the editor
    terminal.until(lambda: "EDITING" in terminal.raw, "the editor has not ended")
    terminal.sees("Nothing is written here yet.", "q quit")
    assert "exercises/moving_average.py" in terminal.raw and "hello q" in terminal.raw
    assert terminal.process.poll() is None


def test_without_a_terminal_it_prints_lines(root: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "grader", "watch"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    lines: list[str] = []

    def until(word: str) -> None:
        assert process.stdout is not None
        for raw in process.stdout:
            lines.append(raw.decode())
            if word in lines[-1]:
                return
        pytest.fail(f"{word} did not come: {lines}")

    until("Watching exercises/moving_average.py")
    until("moving_average: not started, 0 of 6 points.")
    (root / "exercises" / "moving_average.py").write_text(solution("moving_average"), "utf-8")
    until("moving_average passes: 6 points.")
    until("smooth: not started")
    process.send_signal(signal.SIGINT)
    assert process.wait(LONGEST) == 1
    process.stdout.close()
    assert not any("\x1b" in line or "Traceback" in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["watch", "grade"])
def test_killed_at_any_moment_progress_stays_readable_and_never_sinks(
    root: Path, command: str
) -> None:
    """The file is saved again and again, right and wrong, while the command is killed."""
    random.seed(20260114)
    words = [] if command == "grade" else ["watch"]
    progress = root / ".grade" / "progress.json"
    right = solution("moving_average")
    wrong = right.replace("window.mean()", "window.mean() * 2")

    def best() -> float:
        if not progress.exists():
            return 0.0
        known = json.loads(progress.read_text(encoding="utf-8"))["stages"]
        return float(known.get("moving_average", {}).get("best", 0.0))

    def until(answer: str, is_enough: Callable[[float], bool]) -> float:
        """Run it on an answer and kill it when it is enough; the seconds that this took."""
        (root / "exercises" / "moving_average.py").write_text(answer, encoding="utf-8")
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "grader", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )
        while process.poll() is None and not is_enough(time.monotonic() - start):
            time.sleep(0.005)
        taken = time.monotonic() - start
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return taken

    usual = until(wrong, lambda seconds: best() > 0 or seconds > LONGEST)
    before = best()
    assert 0 < before < 6
    for number in range(25):  # in a write they are killed in read/test_progress.py
        moment = usual * random.uniform(0.6, 1.2)  # before, it only imports
        until(right if number % 2 else wrong, lambda seconds, moment=moment: seconds > moment)
        now = best()
        assert now >= before
        before = now
    until(right, lambda seconds: best() == 6 or seconds > LONGEST)
    assert best() == 6
    assert not list(progress.parent.glob("*corrupt*"))
