"""The hidden checks of moving_average."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grader.checking import (
    expect_close,
    expect_no_constant,
    expect_raises,
    expect_shape,
    expect_unchanged,
)

SIZES = [(5, 2), (8, 3), (6, 6), (4, 1)]


def expected_means(values: np.ndarray, width: int) -> np.ndarray:
    """From the running total, which no learner is likely to write."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    return (total[width:] - total[:-width]) / width


@pytest.mark.points(1)
@pytest.mark.pays("zeros", "ones", because="the length alone is looked at")
@pytest.mark.parametrize("n, width", SIZES)
def test_length(submission: Any, rand: Any, n: int, width: int) -> None:
    """There is one average for every place that the window fits in"""
    expect_shape(submission.moving_average(rand(n=n), width), windows=n - width + 1)


@pytest.mark.points(3)
@pytest.mark.parametrize("n, width", [*SIZES, pytest.param(7, 3, marks=pytest.mark.random)])
def test_values(submission: Any, rand: Any, n: int, width: int) -> None:
    """Each value is the mean of its window"""
    values = rand(n=n)
    result = submission.moving_average(values, width)
    expect_close(result, expected_means(values, width), axes="windows", what="the average")


@pytest.mark.points(1)
@pytest.mark.parametrize("n, width", [(3, 4), (2, 0)])
def test_refusal(submission: Any, rand: Any, n: int, width: int) -> None:
    """A width that does not fit is a ValueError"""
    expect_shape(submission.moving_average(rand(n=n), n), windows=1)
    with expect_raises(ValueError, f"width={width} does not fit {n} values"):
        submission.moving_average(rand(n=n), width)


@pytest.mark.points(1)
def test_unchanged(submission: Any, rand: Any) -> None:
    """The input is left as it is"""
    values = rand(n=5)
    with expect_unchanged(values=values):
        result = submission.moving_average(values, 2)
    expect_no_constant(result, values=values)
