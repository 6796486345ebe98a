"""What `grade predict` draws: a question, what became of the answer, and the end."""

import pytest

from grader.learning.predict.screen import (
    asked,
    closing,
    explained,
    not_understood,
    nothing_to_predict,
    once_more,
    opening,
    prompt,
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


def test_the_opening_says_how_to_skip_and_stop():
    assert draw(opening("Fold", 4)) == (
        "\n"
        "  Fold   4 questions before you write code\n"
        "\n"
        "  There are no points: a wrong guess teaches as much as a right one.\n"
        "  Press Enter to see the answer, or q and Enter to stop.\n"
    )


def test_a_question_with_its_choices():
    assert draw(asked(WHICH, 2, 4)) == (
        "\n"
        "  2 of 4   Which `side`?\n"
        "\n"
        "  A sheet is folded.\n"
        "\n"
        "      fold(sheet)\n"
        "\n"
        "    a)  the left [red]side[/]\n"
        "    b)  the right\n"
        "\n"
    )


@pytest.mark.parametrize(
    ("question", "wanted", "form"),
    [
        (SIZE, "a shape", "Write a shape like 7 3 1 or (7, 3, 1)."),
        (PART, "a number", "Write a number like 12, 0.4, 3/8 or -inf."),
        (WHICH, "a or b", "Type one letter: a or b."),
    ],
)
def test_the_prompt_says_what_is_wanted_and_then_in_which_form(question, wanted, form):
    assert prompt(question) == f"  Your answer, {wanted}: "
    assert draw(not_understood(question)) == f"  I cannot read that. {form}\n"


def test_the_first_wrong_answer_gives_nothing_away():
    assert draw(once_more()) == ("  ✗ Not quite. Think again, or press Enter to see the answer.\n")


@pytest.mark.parametrize(
    ("right", "first_line"),
    [
        (True, "  ✓ Right: b) the right"),
        (False, "  ✗ Not this time. The answer is b) the right"),
        (None, "  The answer is b) the right"),
    ],
)
def test_the_answer_and_why(right, first_line):
    assert draw(explained(WHICH, right)) == f"\n{first_line}\n    so it lies to the right.\n"


def test_for_screen_readers_the_marks_are_left_out():
    assert draw(once_more(), kind=PlainConsole).startswith("  Not quite.")
    assert draw(explained(SIZE, True), kind=PlainConsole).startswith("\n  Right: (4, 3)\n")


def test_the_end():
    assert draw(closing(Tally(4, 4, 3), "fold", FILE)) == (
        "\n"
        "  3 of 4 at the first try. Now you know what your code has to do.\n"
        "\n"
        "  Your file:        exercises/fold.py\n"
        "  Grade each save:  grade watch\n"
        "\n"
    )


@pytest.mark.parametrize(("done", "first"), [(1, "1 of 1 at the first try."), (0, "first try")])
def test_the_end_before_the_last_question_says_how_to_go_on(done, first):
    drawn = draw(closing(Tally(4, done, done), "fold", FILE))
    assert (first in drawn) is (done > 0)
    assert f"  {4 - done} questions left. To start again:  grade predict fold\n" in drawn
    assert "exercises/fold.py" in drawn


def test_a_stage_without_questions():
    drawn = draw(nothing_to_predict("nest", "exercises/nest.py"))
    assert "  nest has no questions.\n" in drawn
    assert "  Your file:        exercises/nest.py\n" in drawn


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_other_alphabets(encoding):
    right = draw(explained(SIZE, True), encoding=encoding)
    assert "  + Right: (4, 3)\n" in right and "sqrt 2" in right
    assert "  x Not quite." in draw(once_more(), encoding=encoding)


@pytest.mark.parametrize("width", [40, 60])
def test_narrow_screens(width):
    screens = (opening("Fold", 4), asked(WHICH, 1, 4), once_more(), not_understood(PART))
    for screen in (*screens, explained(WHICH, False), closing(Tally(4, 2, 1), "fold", FILE)):
        assert max(map(len, draw(screen, width).splitlines())) <= width
