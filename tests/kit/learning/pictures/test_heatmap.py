"""The heatmap in the terminal: a number over a shade in each cell."""

from typing import Any

import pytest
from rich.console import Console

from grader.learning.pictures.heatmap import (
    are_shares,
    description,
    heatmap_screen,
    is_light,
    limits,
)
from grader.learning.pictures.types import Rows, TracedHeatmap
from grader.show.screen import PlainConsole
from tests.kit.support.drawn import draw

SHARES: Rows = ((1.0, 0.0), (0.254, 0.746))


def heatmap(*panels: Rows) -> TracedHeatmap:
    named = tuple((f"wing {number}", rows) for number, rows in enumerate(panels))
    return TracedHeatmap("Shares", named, ("the", "cat"), ("sat", "down"), "row", "column")


def lines_of(shown: TracedHeatmap, **how: Any) -> list[str]:
    """The lines that a console draws of it."""
    return draw(heatmap_screen(shown), **how).splitlines()


def test_shares_in_percent_side_by_side() -> None:
    assert lines_of(heatmap(SHARES, SHARES)) == [
        "",
        "  Shares",
        "",
        "  wing 0           wing 1",
        "       sat down         sat down",
        "  the  100    0    the  100    0",
        "      ████             ████",
        "  cat   25   75    cat   25   75",
        "      ░░░░ ▓▓▓▓        ░░░░ ▓▓▓▓",
        "",
        "  Numbers are percent, shades: blank 0, ░ to 25, ▒ to 50, ▓ to 75, █ to 100.",
        "  Each row is a row, each column a column.",
        "",
    ]


def test_in_ascii() -> None:
    lines = lines_of(heatmap(SHARES), encoding="ascii")
    assert lines[6] == "      @@@@"
    assert lines[8] == "      .... ####"


def test_below_each_other_where_it_is_narrow() -> None:
    lines = lines_of(heatmap(*[SHARES] * 5), width=40)
    assert max(map(len, lines)) <= 40
    assert [line for line in lines if "wing 4" in line] == ["  wing 4"]


def test_rows_that_do_not_sum_to_100_are_named() -> None:
    odd: Rows = ((0.5, 0.2), (0.25, 0.75))
    for kind in (Console, PlainConsole):
        lines = lines_of(heatmap(SHARES, odd), kind=kind)
        assert lines[-2] == "  1 row does not sum to 100; the first is wing 1, the: 70."
    columns: Rows = ((0.9, 0.5), (0.1, 0.5))
    lines = lines_of(heatmap(columns))
    assert "  2 rows do not sum to 100; the first is wing 0, the: 140." in lines


@pytest.mark.parametrize(
    "rows",
    [
        SHARES,
        ((0.0, 0.0), (0.3333, 0.6663)),  # nothing may be seen; rounded
        ((1.0, 1.0), (1.0, 0.0)),  # marks
        ((0.5, float("nan")), (2.0, 7.0)),  # no weights
    ],
)
def test_of_other_rows_nothing_is_said(rows: Rows) -> None:
    assert not any("sum to 100" in line for line in lines_of(heatmap(rows)))


def test_other_numbers_have_a_scale_of_their_own() -> None:
    shown = heatmap(((-2.0, 6.0), (float("nan"), float("-inf"))))
    assert not are_shares(shown)
    assert limits(shown) == (-2, 6)
    lines = lines_of(shown)
    assert lines[5:9] == ["  the   -2    6", "           ████", "  cat  nan -inf", "      ????"]
    assert lines[10].startswith("  Shades from blank (-2) to █ (6).")
    same = heatmap(((7.0, 7.0), (7.0, 7.0)))
    assert limits(same) == (7, 8)
    assert lines_of(same)


def test_a_grid_that_is_too_wide_is_cut() -> None:
    wide = TracedHeatmap("Wide", (("one", ((0.5,) * 30,)),), ("a",), ("word",) * 30, "r", "c")
    lines = lines_of(wide)
    assert max(map(len, lines)) <= 80
    assert "  … 15 more columns" in lines


def test_plain() -> None:
    lines = lines_of(heatmap(SHARES, SHARES), kind=PlainConsole)
    assert "  wing 1, cat to down: 75 percent" in lines
    assert not any("█" in line for line in lines)
    assert description(heatmap(SHARES)).startswith("wing 0, the to sat: 100 percent. wing 0, ")


def test_which_ink_can_be_read() -> None:
    assert is_light(1, 1, 1) and is_light(0.5, 0.5, 0.5)
    assert not is_light(0, 0, 0) and not is_light(0.3, 0.3, 0.3)
