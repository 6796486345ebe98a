"""`grade watch` on a real terminal: keys, sizes, signals, and nothing lost by kill -9."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kit.support.checkout import TINY, start_grade
from tests.kit.support.terminal import CODES, LEAVES_THE_SCREEN, LONGEST, Terminal
from tests.kit.support.tiny import copy_tiny


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return copy_tiny(tmp_path / "course").root


@pytest.fixture
def terminal(root: Path) -> Iterator[Terminal]:
    with Terminal(root, "watch") as opened:
        yield opened


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
    left = CODES.sub("", terminal.raw.rpartition(LEAVES_THE_SCREEN)[2])
    assert "1 of 2 stages pass." in left and "grade watch" in left
    terminal.is_as_before()


def test_a_terminal_without_a_cursor_gets_lines(root: Path) -> None:
    with Terminal(root, "watch", TERM="dumb") as terminal:
        terminal.sees("Each save grades the stage.", "Nothing is written")
        terminal.types("\x03")
        assert terminal.ends() == 1 and "\x1b" not in terminal.raw


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
    for _ in ("today", "tomorrow"):
        with Terminal(root, "watch") as terminal:
            terminal.sees("roughness", "2 of 2 stages, 10 of 10 points")
            terminal.types("q")
            assert terminal.ends() == 0


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
    at_once = {"PYTHONUNBUFFERED": "1"}
    process = start_grade("watch", cwd=root, env=at_once, stderr=subprocess.STDOUT)
    lines: list[str] = []

    def until(word: str) -> None:
        for line in process.stdout:
            lines.append(line)
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
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = start_grade(*words, cwd=root, start_new_session=True, **silent)
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
    for number in range(10):  # in a write they are killed in read/test_progress.py
        moment = usual * random.uniform(0.6, 1.2)  # before, it only imports
        until(right if number % 2 else wrong, lambda seconds, moment=moment: seconds > moment)
        now = best()
        assert now >= before
        before = now
    until(right, lambda seconds: best() == 6 or seconds > LONGEST)
    assert best() == 6
    assert not list(progress.parent.glob("*corrupt*"))
