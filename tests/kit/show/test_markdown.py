"""The blocks of an author's text, which a screen and a page draw."""

import pytest

from grader.show.markdown import Block, Kind, blocks


@pytest.mark.parametrize(
    "text, expected",
    [
        ("one\n  two\n\nthree", ["one two", "", "three"]),
        ("one\n    two", ["one two"]),
        ("# Title\ntext", ["Title", "text"]),
        ("one\n| a |\ntwo", ["one", "| a |", "two"]),
    ],
)
def test_lines_of_a_paragraph_are_joined(text: str, expected: list[str]) -> None:
    assert [block.text for block in blocks(text)] == expected


def test_an_item_goes_on_in_the_next_line() -> None:
    first, second = Block(Kind.ITEM, "one more", sign="-"), Block(Kind.ITEM, "two", 2, "1.")
    assert list(blocks("- one\n  more\n  1. two")) == [first, second]


@pytest.mark.parametrize(
    "text", ["    x\n\n      y", "```python\nx\n\n  y\n```", "~~~\nx\n\n  y\n~~~"]
)
def test_code_keeps_its_lines(text: str) -> None:
    assert [block.text for block in blocks(f"a\n\n{text}\n\nb")][2:-2] == ["x", "", "  y"]
    assert [block.indent for block in blocks(text) if block.text] == [4, 4]


def test_a_mark_of_a_list_in_code_is_code() -> None:
    assert list(blocks("```\n- one\n# two\n```")) == [
        Block(Kind.CODE, "- one", 4),
        Block(Kind.CODE, "# two", 4),
    ]
