"""Two changes of one text: brought together where they do not touch, refused where they do."""

import random

import pytest

from grader.learning.workspace.merge import merge

BASE = "a\nb\nc\nd\ne\nf\n"


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        (BASE, BASE, BASE),
        ("A\nb\nc\nd\ne\nf\n", BASE, "A\nb\nc\nd\ne\nf\n"),
        ("A\nb\nc\nd\ne\nf\n", "a\nb\nC\nd\ne\nf\n", "A\nb\nC\nd\ne\nf\n"),
        ("a\nd\ne\nf\n", "a\nb\nc\nd\ne\nF\ng\n", "a\nd\ne\nF\ng\n"),
        ("new\na\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\ne\nf\nend\n", "new\na\nb\nc\nd\ne\nf\nend\n"),
        ("a\nB\nc\nd\ne\nf\n", "a\nB\nc\nd\nE\nf\n", "a\nB\nc\nd\nE\nf\n"),  # both made one change
        ("a\nb\nc\nd\ne\nf", "A\nb\nc\nd\ne\nf\n", "A\nb\nc\nd\ne\nf"),  # no last line end
        ("A\nb\nc\nd\ne\nf\n", "", None),
        ("a\nB\nc\nd\ne\nf\n", "a\nX\nc\nd\ne\nf\n", None),  # the same line
        ("a\nB\nc\nd\ne\nf\n", "a\nb\nC\nd\ne\nf\n", None),  # side by side
        ("a\nb\nnew\nc\nd\ne\nf\n", "a\nb\nnewer\nc\nd\ne\nf\n", None),  # at the same place
        ("a\nd\ne\nf\n", "a\nb\nC\nd\ne\nf\n", None),  # removed and changed
    ],
)
def test_merge(one: str, other: str, merged: str | None) -> None:
    assert merge(BASE, one, other) == merged
    assert merge(BASE, other, one) == merged


def test_what_either_has_added_is_in_it() -> None:
    numbers = random.Random(5)
    lines = [f"line {n}\n" if n % 3 else "\n" for n in range(40)]  # as in code
    brought_together = 0
    for _ in range(100):
        one, other = list(lines), list(lines)
        for text in (one, other):
            at = numbers.randrange(len(text))
            text[at : at + numbers.randint(0, 2)] = [f"new {numbers.random()}\n"]
        merged = merge("".join(lines), "".join(one), "".join(other))
        if merged is not None:
            brought_together += 1
            added = (set(one) | set(other)) - set(lines)
            assert added <= set(merged.splitlines(keepends=True))
            assert len(merged.splitlines()) == len(one) + len(other) - len(lines)
    assert brought_together > 50
