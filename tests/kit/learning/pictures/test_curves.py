"""Curves in the terminal: where the points lie, and what a narrow or plain page makes of them."""

from typing import Any

from grader.learning.pictures.trace import trace_screen
from grader.learning.pictures.types import Trace
from grader.show.screen import PlainConsole
from grader.tracing import Curves
from tests.kit.support.drawn import draw

CURVES = Curves(
    "Growth",
    (1.0, 10.0, 100.0),
    {"square": (1.0, 100.0, 10_000.0), "flat": (1.0, 1.0, 1.0)},
    "days",
    "bytes",
    {"n": (1.0, 10.0, 100.0)},
)


def lines_of(shown: Curves, **how: Any) -> list[str]:
    """The lines that a console draws of them."""
    return draw(trace_screen(Trace("growth", "Growth", (shown,))), **how).splitlines()


def test_every_point_lies_where_its_logarithm_is() -> None:
    lines = lines_of(CURVES)
    plot = [line.partition("│")[2] for line in lines if "│" in line]
    assert len(plot) == 16
    points = {
        (row, column): sign
        for row, line in enumerate(plot)
        for column, sign in enumerate(line)
        if sign in "●▲◎"
    }
    assert points == {
        (0, 55): "●",
        (7, 28): "●",
        (15, 0): "◎",  # both begin at 1
        (15, 28): "▲",
        (15, 55): "▲",
    }
    assert plot[7].endswith("· n"), "the guide ends half-way up"
    assert lines[4] == "  bytes" and lines[5].startswith("    10k │")
    assert lines[-3].split() == ["1", "10", "100"]
    assert lines[-2] == "  ● square   ▲ flat   ◎ both   across: days"


def test_in_ascii_and_where_it_is_narrow() -> None:
    lines = lines_of(CURVES, width=30, encoding="ascii")
    assert max(map(len, lines)) <= 30
    assert "  o square   x flat   @ both" in lines
    narrow = [line for line in lines_of(CURVES, width=40) if "square" in line or "across" in line]
    assert narrow == ["  ● square   ▲ flat   ◎ both", "  across: days"]


def test_names_of_guides_never_lie_on_each_other() -> None:
    same = dict.fromkeys(("one", "two", "three"), (1.0, 10.0, 100.0))
    lines = lines_of(Curves("G", CURVES.x, CURVES.curves, "n", "b", same))
    assert sum(line.endswith((" one", " two", " three")) for line in lines) == 3


def test_one_place_and_one_number_are_drawn_too() -> None:
    one = Curves("G", (5.0,), {"one": (3.0,)}, "n", "b", {"guide": (3.0,)})
    assert any("●" in line for line in lines_of(one))


def test_plain_it_is_read_out() -> None:
    lines = lines_of(CURVES, kind=PlainConsole)
    assert "  square, days 100: 10k bytes" in lines
    assert "  n, days 10: 10 bytes" in lines
    assert "  flat, days 10: 1 bytes" in lines
    assert not any("│" in line for line in lines)


def test_plain_a_level_guide_is_said_once() -> None:
    level = Curves("G", CURVES.x, CURVES.curves, "n", "b", {"least": (2.0,) * 3})
    lines = lines_of(level, kind=PlainConsole)
    assert [line for line in lines if "least" in line] == ["  least: 2 b throughout"]


def test_the_last_place_is_always_named() -> None:
    places = tuple(map(float, range(100, 130)))
    many = Curves("G", places, {"one": places}, "n", "b")
    shown = lines_of(many)[-3].split()
    assert shown[0] == "100" and shown[-1] == "129" and len(shown) > 5
