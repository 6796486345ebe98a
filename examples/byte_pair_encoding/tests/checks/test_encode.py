"""The hidden checks of encode."""

from __future__ import annotations

import random

import pytest

from grader.checking import Submission, expect_equal

Pair = tuple[int, int]
AB = [(97, 98), (256, 256), (256, 99), (258, 257)]  # ab, abab, abc, abcabab
ACCENTS = [(195, 169), (226, 130), (257, 172), (256, 256)]  # é, the first two bytes of €, €, éé


def reference(text: str, merges: list[Pair]) -> list[int]:
    """Always the merge that was learnt first, of those that the sequence has room for."""
    ranks = {pair: rank for rank, pair in reversed(list(enumerate(merges)))}
    ids = list(text.encode("utf-8"))
    while True:
        places = [place for place in range(len(ids) - 1) if (ids[place], ids[place + 1]) in ranks]
        if not places:
            return ids
        best = min(places, key=lambda place: ranks[ids[place], ids[place + 1]])
        ids[best : best + 2] = [256 + ranks[ids[best], ids[best + 1]]]


def expect_encoded(submission: Submission, text: str, merges: list[Pair]) -> None:
    """Expect the reference's tokens."""
    expected = reference(text, merges)
    expect_equal(submission.encode(text, merges), expected, "the tokens")


@pytest.mark.points(6, hint=3)
@pytest.mark.parametrize("text", ["ab", "abab", "cab", "abcababx", "bababc"])
def test_small_text(submission: Submission, text: str) -> None:
    """Pairs become the tokens from 256 on"""
    expect_encoded(submission, text, AB)


@pytest.mark.points(5, hint=1)
@pytest.mark.parametrize("text", ["é", "éé", "€", "zoë €3", "日本", "🙂"])
def test_beyond_ascii(submission: Submission, text: str) -> None:
    """A text begins as its bytes in UTF-8"""
    expect_encoded(submission, text, [])
    expect_encoded(submission, text, ACCENTS)


@pytest.mark.points(5, hint=2)
@pytest.mark.parametrize("text", ["abc", "xabcabc", "aaab", "bcabcb"])
def test_order(submission: Submission, text: str) -> None:
    """The merge that was learnt first is applied first"""
    expect_encoded(submission, text, [(98, 99), (97, 98), (97, 256), (97, 97)])


@pytest.mark.points(2, hint=1)
@pytest.mark.parametrize("text, merges", [("", AB), ("a", AB), ("ab", [])])
def test_edges(submission: Submission, text: str, merges: list[Pair]) -> None:
    """Works for an empty text, a single letter, and without merges"""
    expect_encoded(submission, "ab", AB)
    expect_encoded(submission, text, merges)


@pytest.mark.points(2, hint=2)
@pytest.mark.parametrize("length", [60, pytest.param(90, marks=pytest.mark.random)])
def test_any_text(submission: Submission, seed: int, length: int) -> None:
    """A longer text is encoded as the merges say"""
    text = "".join(random.Random(seed).choices("abcé", k=length))
    expect_encoded(submission, text, [(98, 99), *((97, 98), (97, 256), (195, 169), (97, 97))])
