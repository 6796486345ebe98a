"""`grade predict`: questions before the code, answered by typing, at one's own pace."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from grader.command.main import main
from grader.learning.predict.command import put
from grader.learning.predict.questions import parse_predictions
from grader.learning.predict.types import Tally
from grader.read.progress import memory_folder
from grader.show.screen import Screen
from tests.kit.support.checkout import ROOT, imported_by
from tests.kit.support.terminal import Terminal
from tests.kit.support.tiny import Capture, Typed

FOLD = """\
# Fold a sheet

## 1. How large?
A sheet of 4 x 6 is folded.

    fold(sheet)
Answer: shape 4, 3
Because: one size is halved.

## 2. What part?
How much of it do you see?
Answer: number 1/2
Because: the other part is below.

## 3. Which side?
Where is the fold?
- a: the left [red]side[/]
- b: right
Answer: choice b
Because: it was folded to the left.
"""
PREDICTIONS = parse_predictions(FOLD, "fold.md")


@pytest.fixture
def folder(birds: Path) -> Path:
    """The course, with questions on its first stage alone."""
    (birds / "hints" / "predictions").mkdir()
    (birds / "hints" / "predictions" / "fold.md").write_text(FOLD, encoding="utf-8")
    return birds


def play(*typed: str | type[BaseException]) -> tuple[Tally, list[str]]:
    """Answer like this, then end the input; how far it went, and every line shown."""
    from rich.console import Console

    answers: Iterator[str | type[BaseException]] = iter(typed)
    console = Console(width=80, force_terminal=False, _environ={})

    def ask(prompt: str) -> str:
        console.print(f"ask{prompt}")
        answer = next(answers, EOFError)
        if isinstance(answer, str):
            return answer
        raise answer

    def show(screen: Screen) -> None:
        console.print(screen, end="")

    with console.capture() as shown:
        tally = put(PREDICTIONS, ask, show)
    return tally, [line.strip() for line in shown.get().splitlines() if line.strip()]


def count(lines: list[str], beginning: str) -> int:
    return sum(line.startswith(beginning) for line in lines)


@pytest.mark.parametrize(
    "typed, first, counts",
    [
        (("4x3", "50%", "B)"), 3, {"✓ Right": 3, "✗": 0, "one size is halved.": 1}),
        (("4 6", "4 3", ".5", "b"), 2, {"✗ Not quite.": 1, "✓ Right": 3}),
        (
            ("no idea", "four by three", "4 3", "b", "1/2", "left", "b"),
            *(3, {"I cannot read that.": 4, "✗": 0}),
        ),
        (("", "  ", "a", ""), 0, {"The answer is": 3, "✗ Not this time": 0}),
    ],
    ids=["all right at once", "a second try", "what cannot be read is no try", "empty lines"],
)
def test_what_is_said_of_answers(
    typed: tuple[str, ...], first: int, counts: dict[str, int]
) -> None:
    tally, lines = play(*typed)
    assert tally == Tally(3, done=3, first=first)
    assert {beginning: count(lines, beginning) for beginning in counts} == counts


def test_the_answer_is_not_shown_before_the_second_try() -> None:
    _, lines = play("4 6")
    assert not [line for line in lines if "(4, 3)" in line or "halved" in line]


def test_what_cannot_be_read_may_come_between_two_tries() -> None:
    tally, _ = play("4 6", "hm", "4 3")
    assert tally == Tally(3, done=1, first=0)


@pytest.mark.parametrize("stop", ["q", " Q ", "quit", "exit", EOFError, KeyboardInterrupt])
def test_it_stops_at_any_time(stop: str | type[BaseException]) -> None:
    assert play(stop, "4 3")[0] == Tally(3)
    assert play("4 3", "7", stop, "1/2")[0] == Tally(3, done=1, first=1)


# --- the command -------------------------------------------------------------------------------


def run(folder: Path, typed: str | bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    """`grade predict` with its input piped in."""
    return subprocess.run(
        [sys.executable, "-m", "grader", "predict", *words],
        input=typed.encode() if isinstance(typed, str) else typed,
        capture_output=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
    )


SESSION = """
  Fold a sheet   3 questions before you write code

  There are no points: a wrong guess teaches as much as a right one.
  Press Enter to see the answer, or q and Enter to stop.

  1 of 3   How large?

  A sheet of 4 x 6 is folded.

      fold(sheet)

  Your answer, a shape:   I cannot read that. Write a shape like 7 3 1 or (7, 3, 1).
  Your answer, a shape:   ✗ Not quite. Think again, or press Enter to see the answer.
  Your answer, a shape:
  ✓ Right: (4, 3)
    one size is halved.

  2 of 3   What part?

  How much of it do you see?

  Your answer, a number:   I cannot read that. Write a number like 12, 0.4, 3/8 or -inf.
  Your answer, a number:
  The answer is 1/2
    the other part is below.

  3 of 3   Which side?

  Where is the fold?

    a)  the left [red]side[/]
    b)  right

  Your answer, a or b:   I cannot read that. Type one letter: a or b.
  Your answer, a or b:   ✗ Not quite. Think again, or press Enter to see the answer.
  Your answer, a or b:
  ✗ Not this time. The answer is b) right
    it was folded to the left.

  0 of 3 at the first try. Now you know what your code has to do.

  Your file:        exercises/fold.py
  Grade each save:  grade watch

"""


def test_a_session_is_seen_like_this(folder: Path) -> None:
    ran = run(folder, "four\n4 6\n4 3\nhalf\n\nleft\na\na\n", "fold")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.decode().replace(": \n", ":\n").replace(os.sep, "/") == SESSION
    assert not memory_folder(folder).exists()


def test_the_input_may_end_anywhere(folder: Path) -> None:
    ran = run(folder, "4 3\n7", "fold")
    shown = ran.stdout.decode()
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert "  Your answer, a number: \n\n  1 of 1 at the first try.\n" in shown
    assert "2 questions left. To start again:  grade predict fold" in shown


def test_bytes_that_are_no_text_are_asked_again(folder: Path) -> None:
    ran = run(folder, b"\xff\xfe\x1b[2J\n4 3\n", "fold")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert "I cannot read that." in ran.stdout.decode()
    assert b"\x1b" not in ran.stdout
    assert "1 of 1 at the first try" in ran.stdout.decode()


def test_without_a_stage_it_is_where_the_learner_is(
    folder: Path, grade: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)  # as when whoever starts it closes it
    assert "Fold a sheet   3 questions" in grade("predict")
    (folder / "exercises" / "fold.py").write_text("x = 1\n", encoding="utf-8")
    assert "wings has no questions." in grade("predict")


def test_a_stage_without_questions_is_no_fault(folder: Path, grade: Typed) -> None:
    shown = grade("predict", "nest")
    assert "nest has no questions." in shown
    assert str(Path("exercises", "nest.py")) in shown


def test_a_spoilt_memory_is_told(folder: Path, capsys: Capture) -> None:
    memory_folder(folder).mkdir()
    (memory_folder(folder) / "progress.json").write_text("{", encoding="utf-8")
    (folder / "hints" / "predictions" / "fold.md").unlink()
    assert main(["predict"]) == 0
    assert "progress.json.corrupt" in capsys.readouterr().err


def test_a_fault_of_the_author_is_told_in_one_line(folder: Path, refused: Typed) -> None:
    (folder / "hints" / "predictions" / "fold.md").write_text("# Fold\n", encoding="utf-8")
    fault = "grade: hints/predictions/fold.md: has 0 questions, not 3 to 5\n"
    assert refused("predict", "fold") == fault


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_on_a_terminal_a_key_ends_it_calmly(folder: Path, key: str) -> None:
    with Terminal(folder, "predict", "fold") as terminal:
        terminal.sees("a shape: ")
        terminal.types("4 9\n")
        terminal.until(lambda: terminal.raw.count("a shape: ") == 2, "not asked again")
        for _ in range(10):  # between the prompt and the wait for a line Python misses a signal
            terminal.types(key)
            with suppress(subprocess.TimeoutExpired):
                terminal.process.wait(5)
                break
        assert terminal.ends() == 0
        terminal.until(lambda: "3 questions left" in terminal.raw, "no end")
        assert "Not quite." in terminal.raw and "Traceback" not in terminal.raw


def test_imports_nothing_that_is_slow(folder: Path) -> None:
    imported = imported_by("predict", "fold", input="4 3\n", cwd=folder)
    assert "grader.learning.predict.screen" in imported
    assert not imported & {"torch", "pytest", "numpy", "subprocess", "asyncio", "matplotlib"}
