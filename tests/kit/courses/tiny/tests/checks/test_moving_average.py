"""The hidden checks of moving_average."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grader.checking import expect_equal, expect_raises

SIZES = [(5, 2), (8, 3), (6, 6), (4, 1)]


def drawn(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


def expected_means(values: np.ndarray, width: int) -> np.ndarray:
    """From the running total, which no learner is likely to write."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    return (total[width:] - total[:-width]) / width


@pytest.mark.points(1)
@pytest.mark.parametrize("n, width", SIZES)
def test_length(submission: Any, seed: int, n: int, width: int) -> None:
    """There is one average for every place that the window fits in"""
    result = submission.moving_average(drawn(seed, n), width)
    expect_equal(result.shape, (n - width + 1,), "the shape")


@pytest.mark.points(3)
@pytest.mark.parametrize("n, width", SIZES)
def test_values(submission: Any, seed: int, n: int, width: int) -> None:
    """Each value is the mean of its window"""
    values = drawn(seed, n)
    result = submission.moving_average(values, width)
    expected = expected_means(values, width)
    expect_equal(result.shape, expected.shape, "the shape")
    wrong = np.flatnonzero(~np.isclose(result, expected))
    assert not wrong.size, f"The mean of window {wrong[0]} is wrong"


@pytest.mark.points(1)
@pytest.mark.parametrize("n, width", [(3, 4), (2, 0)])
def test_refusal(submission: Any, seed: int, n: int, width: int) -> None:
    """A width that does not fit is a ValueError"""
    with expect_raises(ValueError, f"width={width} does not fit {n} values"):
        submission.moving_average(drawn(seed, n), width)


@pytest.mark.points(1)
def test_unchanged(submission: Any, seed: int) -> None:
    """The input is left as it is"""
    values = drawn(seed, 5)
    before = values.copy()
    submission.moving_average(values, 2)
    assert np.array_equal(values, before), "Your code changes values in place"
