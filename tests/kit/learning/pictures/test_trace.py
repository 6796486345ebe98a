"""How steps are drawn: width, letters, plain lines, and nothing of the learner's as markup."""

from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from grader.learning.pictures.trace import trace_screen
from grader.learning.pictures.types import Axis, Block, Rows, Stop, Trace, TracedHeatmap, TracedStep
from grader.show.screen import PlainConsole
from tests.kit.support.drawn import draw

NUMBERS: Rows = ((0.25, -1.5), (float("-inf"), 2.0))
WEIGHTS = TracedStep(
    "weights",
    (Axis("H", 2), Axis("Tq", 2, ("the", "cat")), Axis("Tk", 2, ("sat", "down"))),
    (Block((0,), NUMBERS), Block((1,), NUMBERS)),
    says="Each row of `weights` sums to **1**.",
)
SIGNS = TracedStep("seen", (Axis("T", 2), Axis("T", 2)), (Block((), ((True, False),) * 2),))


def lines_of(*parts: TracedStep | TracedHeatmap | str, width: int = 80, **more: Any) -> list[str]:
    """The lines that a console draws of a trace."""
    return draw(trace_screen(Trace("fold", "Fold a sheet", parts, **more)), width).splitlines()


def test_tables_side_by_side() -> None:
    assert lines_of(WEIGHTS)[3:9] == [
        "  weights   H=2  Tq=2  Tk=2",
        "    Each row of `weights` sums to 1.",
        "    H=0                  H=1",
        "           sat   down           sat   down",
        "    the   0.25  -1.50    the   0.25  -1.50",
        "    cat   -inf   2.00    cat   -inf   2.00",
    ]


def test_one_below_the_other_where_it_is_narrow() -> None:
    lines = lines_of(WEIGHTS, width=40)
    assert lines.index("    H=0") < lines.index("    H=1")
    assert max(map(len, lines)) <= 40


def test_signs_for_booleans() -> None:
    assert lines_of(SIGNS)[4:6] == ["    ✓  ·", "    ✓  ·"]
    trace = Trace("fold", "Fold", (SIGNS, WEIGHTS))
    shown = draw(trace_screen(trace), encoding="ascii")
    assert shown.splitlines()[4:6] == ["    +  .", "    +  ."]


def test_plain_lines_say_one_fact_each() -> None:
    shown = draw(trace_screen(Trace("fold", "Fold", (WEIGHTS, SIGNS))), kind=PlainConsole)
    lines = [line.strip() for line in shown.splitlines()]
    assert "weights   H is 2, Tq is 2, Tk is 2" in lines
    assert "weights, H 1, the to down: -1.50" in lines
    assert "seen, T 1, T 0: yes" in lines
    assert "seen, T 1, T 1: no" in lines
    assert len([line for line in lines if line.startswith("weights, ")]) == 8


RIGHT = replace(WEIGHTS, blocks=(Block((0,), NUMBERS), Block((1,), ((0.25, 3.0), NUMBERS[1]))))
OLDER = replace(WEIGHTS, blocks=(Block((0,), ((9.0, -1.5), NUMBERS[1])), Block((1,), NUMBERS)))


def compared(
    right: TracedStep, *, before: TracedStep | None = None, kind: type[Console] = Console
) -> list[str]:
    mine, theirs = (Trace("fold", "Fold a sheet", (step,)) for step in (WEIGHTS, right))
    older = None if before is None else Trace("fold", "Fold a sheet", (before,))
    shown = draw(trace_screen(mine, theirs, older), kind=kind)
    return [line.rstrip() for line in shown.splitlines()]


def test_the_right_table_stands_beside_the_wrong_one() -> None:
    lines = compared(RIGHT)
    assert lines[2] == "  The first wrong step: weights."
    assert lines[7:] == [
        "    H=0, yours             H=0, right",
        "           sat   down             sat   down",
        "    the   0.25  -1.50      the   0.25  -1.50",
        "    cat   -inf   2.00      cat   -inf   2.00",
        "    H=1, yours             H=1, right",
        "           sat    down           sat  down",
        "    the   0.25   -1.50✗    the  0.25  3.00",
        "    cat   -inf    2.00     cat  -inf  2.00",
        "",
        "  To check it:  grade fold",
        "  For a hint:   grade hint fold",
        "",
    ]


def test_what_the_last_save_changed_has_a_sign_of_its_own() -> None:
    lines = compared(WEIGHTS, before=OLDER)
    assert lines[2:4] == [
        "  Every number of this example is right. The checks try other inputs, too.",
        "  ~ marks what your last save changed.",
    ]
    assert "    the   0.25~  -1.50     the   0.25  -1.50" in lines


def test_plain_lines_say_what_is_right_and_what_changed() -> None:
    lines = [line.strip() for line in compared(RIGHT, before=OLDER, kind=PlainConsole)]
    assert "weights, H 1, the to down: -1.50, wrong: 3.00 is right" in lines
    assert "weights, H 0, the to sat: 0.25, changed" in lines
    assert not any("marks" in line for line in lines)


def test_numbers_on_other_axes_are_shown_beside_the_right_ones() -> None:
    flat = replace(WEIGHTS, axes=(Axis("T", 2),), blocks=(Block((), ((1.0, 2.0),)),))
    assert "    0.25  -1.50    1.00  2.00" not in compared(flat)
    assert "    right" in "".join(compared(flat)[7:])
    plain = [line.strip() for line in compared(flat, kind=PlainConsole)]
    assert "right weights, T 1: 2.00" in plain


def test_many_columns_are_cut_to_the_width() -> None:
    wide = TracedStep("wide", (Axis("D", 16),), (Block((), ((1234.5,) * 16,)),))
    lines = lines_of(wide, width=60)
    assert max(map(len, lines)) <= 60
    assert "    … 10 more columns" in lines


def test_a_misfit_is_said_in_a_sentence_and_has_no_names() -> None:
    step = TracedStep("halves", (Axis("", 2), Axis("", 2)), (Block((), NUMBERS),), misfit="Oh.")
    assert lines_of(step)[3:5] == ["  halves   2  2", "    Oh."]


def test_the_same_numbers_elsewhere() -> None:
    step = TracedStep("b", (Axis("T", 1),), (Block((), ((1.0,),)),), same_as="a")
    assert "    The numbers of a, rearranged." in lines_of(step)


def test_a_sentence_and_a_pointer_to_the_picture() -> None:
    picture = TracedHeatmap("Map", (("one", ((1.0,),)),), ("a",), ("b",), "row", "column")
    lines = lines_of("The end, with `code`.", picture)
    assert "  The end, with `code`." in lines
    assert "  As a picture:  grade heatmap fold" in lines


@pytest.mark.parametrize("not_written", [True, False])
def test_where_it_stopped(not_written: bool) -> None:
    stop = Stop("wing", "wings", not_written, "ValueError: no\n  wings.py, line 3, in wing")
    text = "\n".join(lines_of(WEIGHTS, stop=stop))
    assert ("wing is not written yet." in text) is not_written
    assert ("      wings.py, line 3, in wing" in text) is not not_written
    assert "To check it:  grade wings" in text
    assert "For a hint:   grade hint wings" in text


def test_nothing_of_the_learners_is_markup_or_an_escape() -> None:
    stop = Stop("f", "fold", False, "[red]x[/red] \x1b[2J")
    text = "\n".join(lines_of(stop=stop, printed="[bold]\x1b]0;gone\x07" + "\nline" * 20))
    assert "[red]x[/red] \\x1b[2J" in text
    assert "[bold]\\x1b]0;gone\\x07" in text
    assert "\x1b" not in text
    assert "13 more" in text
