"""A difference on any console: the signs carry it, and no letter of it is lost."""

import pytest
from rich.console import Console

from grader.learning.workspace.diff import diff
from grader.show.screen import PlainConsole
from tests.kit.support.drawn import draw

STUB = "one\ntwo\nthree\nfour\nfive\n"
LONG = "letters = " + " + ".join(f"'{n}'" for n in range(30))
NOW = STUB.replace("two", f"    {LONG}").replace("five", "fünf\x1b[2J → [red]5[/red]")


def drawn(console: type[Console] = Console, encoding: str = "utf-8", **options: object) -> str:
    return draw(diff("exercises/x.py", STUB, NOW), 60, console, encoding, **options)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_every_console_gets_it_whole(encoding: str) -> None:
    text = drawn(encoding=encoding)
    assert max(len(line) for line in text.splitlines()) <= 60
    assert LONG.replace(" ", "") in "".join(text.split())
    assert "\n-two\n" in text
    assert "\n-five\n" in text
    assert "\\x1b[2J" in text
    assert "[red]5[/red]" in text
    assert text.endswith("\n\n  2 lines added, 2 removed.\n")
    assert [line[0] for line in text.splitlines() if line.startswith(("+", "-"))] == [*"-+-+-+"]


def test_colour_adds_nothing_but_colour() -> None:
    coloured = drawn(force_terminal=True, color_system="standard")
    assert "\x1b[31m-two" in coloured
    assert "\x1b[32m+" in coloured


def test_for_a_screen_reader_words_stand_in_place_of_signs() -> None:
    text = drawn(PlainConsole)
    assert text.startswith("From line 1:\none\nremoved: two\nadded:     letters = ")
    assert "\nremoved: five\nadded: fünf" in text
    assert "@@" not in text
