"""What `grade predict` draws on every kind of screen; a whole session is in test_command.py."""

import pytest

from grader.learning.predict.screen import (
    asked,
    closing,
    explained,
    not_understood,
    once_more,
    opening,
)
from grader.learning.predict.types import Answer, Question, Tally
from grader.show.screen import PlainConsole
from tests.kit.support.drawn import draw

WHICH = Question(
    "Which `side`?",
    "A sheet is folded.\n\n    fold(sheet)",
    {"a": "the left [red]side[/]", "b": "the right"},
    Answer("choice", "b", "b)"),
    "so it lies\nto the right.",
)
SIZE = Question("How large?", "So?", {}, Answer("shape", (4, 3), "(4, 3)"), "It is √2 × as wide.")
PART = Question("What part?", "So?", {}, Answer("number", 0.5, "1/2"), "Half.")
FILE = "exercises/fold.py"


def test_for_screen_readers_the_marks_are_left_out() -> None:
    assert draw(once_more(), kind=PlainConsole).startswith("  Not quite.")
    assert draw(explained(SIZE, True), kind=PlainConsole).startswith("\n  Right: (4, 3)\n")


@pytest.mark.parametrize(("done", "first"), [(1, "1 of 1 at the first try."), (0, "first try")])
def test_the_end_before_the_last_question_says_how_to_go_on(done: int, first: str) -> None:
    drawn = draw(closing(Tally(4, done, done), "fold", FILE))
    assert (first in drawn) is (done > 0)
    assert f"  {4 - done} questions left. To start again:  grade predict fold\n" in drawn
    assert "exercises/fold.py" in drawn


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_other_alphabets(encoding: str) -> None:
    right = draw(explained(SIZE, True), encoding=encoding)
    assert "  + Right: (4, 3)\n" in right and "sqrt 2" in right
    assert "  x Not quite." in draw(once_more(), encoding=encoding)


@pytest.mark.parametrize("width", [40, 60])
def test_narrow_screens(width: int) -> None:
    screens = (opening("Fold", 4), asked(WHICH, 1, 4), once_more(), not_understood(PART))
    for screen in (*screens, explained(WHICH, False), closing(Tally(4, 2, 1), "fold", FILE)):
        assert max(map(len, draw(screen, width).splitlines())) <= width
