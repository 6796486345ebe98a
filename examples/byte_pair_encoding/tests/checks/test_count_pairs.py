"""The hidden checks of count_pairs."""

from __future__ import annotations

import random

import pytest

from grader.checking import Submission, expect_equal


def reference(ids: list[int]) -> dict[tuple[int, int], int]:
    """Place by place, and each new pair is looked up in the whole list."""
    pairs = [(ids[place - 1], ids[place]) for place in range(1, len(ids))]
    return {pair: pairs.count(pair) for pair in pairs}


@pytest.mark.points(6, hint=1)
@pytest.mark.parametrize("ids", [[1, 2], [1, 2, 1, 2, 3], [2, 1, 1, 2, 1], [255, 0, 255, 0, 255]])
def test_values(submission: Submission, ids: list[int]) -> None:
    """Every pair of neighbours is counted, in its own order"""
    expect_equal(submission.count_pairs(ids), reference(ids), "the counts")


@pytest.mark.points(3, hint=1)
@pytest.mark.parametrize("ids", [[7, 7, 7], [7, 7, 7, 7], [1, 7, 7, 7, 1]])
def test_overlap(submission: Submission, ids: list[int]) -> None:
    """Pairs overlap"""
    expect_equal(submission.count_pairs(ids), reference(ids), "the counts")


@pytest.mark.points(3, hint=2)
@pytest.mark.parametrize("ids", [[], [5]])
def test_no_pairs(submission: Submission, ids: list[int]) -> None:
    """An empty list and a single number have no pairs"""
    expect_equal(submission.count_pairs([2, 2, 2]), {(2, 2): 2}, "the counts")
    expect_equal(submission.count_pairs(ids), {}, "the counts")


@pytest.mark.points(3, hint=3)
@pytest.mark.parametrize("length", [40, pytest.param(60, marks=pytest.mark.random)])
def test_many(submission: Submission, seed: int, length: int) -> None:
    """The counts of a longer list are right"""
    draw = random.Random(seed)
    ids = [draw.randrange(256, 260) for _ in range(length)]
    expect_equal(submission.count_pairs(ids), reference(ids), "the counts")
