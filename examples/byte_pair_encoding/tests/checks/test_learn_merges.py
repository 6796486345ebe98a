"""The hidden checks of learn_merges."""

from __future__ import annotations

import random

import pytest

from grader.checking import Submission, expect_equal

Pair = tuple[int, int]
TEXT = b"the cat in the hat sat on the mat; that hat, the cat said, is that."


def reference(ids: list[int], num_merges: int) -> list[Pair]:
    """Each pair's count is taken from the whole sequence, again in each round."""
    merges: list[Pair] = []
    for new_id in range(256, 256 + num_merges):
        pairs = [(ids[place], ids[place + 1]) for place in range(len(ids) - 1)]
        most = max((pairs.count(pair) for pair in pairs), default=0)
        if most < 2:
            break
        best = next(pair for pair in pairs if pairs.count(pair) == most)
        merges.append(best)
        merged: list[int] = []
        for each in ids:
            if merged and (merged[-1], each) == best:
                merged[-1] = new_id
            else:
                merged.append(each)
        ids = merged
    return merges


def expect_learnt(submission: Submission, data: bytes, num_merges: int) -> None:
    """Expect the reference's pairs."""
    expected = reference(list(data), num_merges)
    learnt = submission.learn_merges(list(data), num_merges)
    expect_equal(learnt, expected, "the pairs")


@pytest.mark.points(6, hint=1)
@pytest.mark.parametrize("data, num_merges", [(b"abcab", 1), (b"abababcab", 2), (b"aabaabaab", 3)])
def test_small_text(submission: Submission, data: bytes, num_merges: int) -> None:
    """The most frequent pair is merged, and counted again"""
    expect_learnt(submission, data, num_merges)


@pytest.mark.points(5, hint=2)
@pytest.mark.parametrize("num_merges", [3, 12])
def test_longer_text(submission: Submission, num_merges: int) -> None:
    """New tokens become parts of other tokens"""
    expect_learnt(submission, TEXT, num_merges)


@pytest.mark.points(5, hint=3)
@pytest.mark.parametrize("data", [b"xyabxyab", b"babadcdc", b"zazbyzazby", b"cdcdabab"])
def test_first_of_equals(submission: Submission, data: bytes) -> None:
    """Of equally frequent pairs, the first in the sequence is taken"""
    expect_learnt(submission, data, 3)


@pytest.mark.points(4, hint=4)
@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abcd", b"abab"])
def test_nothing_more_to_learn(submission: Submission, data: bytes) -> None:
    """It stops early when no pair occurs twice"""
    expect_learnt(submission, b"ab" * 3, 1)
    expect_learnt(submission, data, 5)


@pytest.mark.points(3, hint=4)
@pytest.mark.parametrize("num_merges", [0, 1, 2])
def test_as_many_as_wanted(submission: Submission, num_merges: int) -> None:
    """No more pairs are learnt than were asked for"""
    expect_learnt(submission, TEXT, 4)
    expect_learnt(submission, TEXT, num_merges)


@pytest.mark.points(2, hint=5)
@pytest.mark.parametrize("length", [200, pytest.param(300, marks=pytest.mark.random)])
def test_any_bytes(submission: Submission, seed: int, length: int) -> None:
    """Bytes of every kind are learnt from, 255 too"""
    draw = random.Random(seed)
    expect_learnt(submission, bytes(draw.choice([0, 7, 254, 255]) for _ in range(length)), 10)
