"""The simple markdown of an author's text, as blocks that a screen or a page draws. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

INLINE = re.compile(r"(``.+?``|`[^`]+`|\*\*[^*\n]+\*\*)")
_FENCE = re.compile(r"```|~~~")
_HEADING = re.compile(r"#{1,6} +(.+?) *#*$")
_ITEM = re.compile(r"( *)([-*+]|\d{1,2}[.)]) +(.*)")
_INDENT = 4  # of code


class Kind(Enum):
    """What a block is; CODE is one line, also of a table."""

    PARAGRAPH = "paragraph"
    HEADING = "heading"
    ITEM = "item"
    CODE = "code"
    BLANK = "blank"


_TEXT = (Kind.PARAGRAPH, Kind.ITEM)  # blocks that may continue in the next line


@dataclass(frozen=True)
class Block:
    """A part of a text, in one line; an item has a `sign`, such as "-" or "2."."""

    kind: Kind
    text: str = ""
    indent: int = 0
    sign: str = ""


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a text; the lines of a paragraph or an item are joined."""
    before: Block | None = None
    for block in _lines(text):
        if before and block.kind is Kind.PARAGRAPH and before.kind in _TEXT:
            before = replace(before, text=f"{before.text} {block.text}")
            continue
        if before:
            yield before
        before = block
    if before:
        yield before


def _lines(text: str) -> Iterator[Block]:
    """A block for each line, except those that begin and end code."""
    last, fence = Kind.BLANK, ""
    for line in text.strip("\n").split("\n"):
        body = line.strip()
        if body == fence if fence else _FENCE.match(body):
            last, fence = Kind.BLANK, "" if fence else body[:3]
            continue
        if fence:
            block = Block(Kind.CODE, line, _INDENT)
        elif not body:
            block = Block(Kind.CODE if last is Kind.CODE else Kind.BLANK)
        elif line.startswith("|"):
            block = Block(Kind.CODE, line)
        elif line.startswith(" " * _INDENT) and last not in _TEXT:
            block = Block(Kind.CODE, line[_INDENT:], _INDENT)
        elif heading := _HEADING.match(line):
            block = Block(Kind.HEADING, heading[1])
        elif item := _ITEM.match(line):
            block = Block(Kind.ITEM, item[3], len(item[1]), item[2])
        else:
            block = Block(Kind.PARAGRAPH, body)
        last = block.kind
        yield block
