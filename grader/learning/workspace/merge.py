"""Merges two changes of one text, line by line. Pure."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TypeAlias

# The first replaced line, the first line after them, and their replacement.
_Change: TypeAlias = tuple[int, int, tuple[str, ...]]


def merge(base: str, one: str, other: str) -> str | None:
    """`base` with the changes of `one` and of `other`; None if two changes touch.

    Changes touch if they share a line or are adjacent. A change made in both is applied once.
    """
    lines = base.splitlines(keepends=True)
    ones, others = _changes(lines, one), _changes(lines, other)
    for mine in ones:
        for theirs in others:
            if mine != theirs and mine[0] <= theirs[1] and theirs[0] <= mine[1]:
                return None
    merged: list[str] = []
    at = 0
    for first, last, instead in sorted({*ones, *others}):
        merged += [*lines[at:first], *instead]
        at = last
    return "".join([*merged, *lines[at:]])


def _changes(lines: list[str], text: str) -> list[_Change]:
    changed = text.splitlines(keepends=True)
    matcher = SequenceMatcher(None, lines, changed, autojunk=False)
    return [
        (first, last, tuple(changed[begin:end]))
        for kind, first, last, begin, end in matcher.get_opcodes()
        if kind != "equal"
    ]
