"""The hidden checks of smooth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grader.checking import expect_equal


@pytest.mark.points(3)
@pytest.mark.parametrize("n, width, times", [(6, 2, 2), (9, 3, 2), (12, 3, 4), (5, 2, 0)])
def test_values(submission: Any, seed: int, n: int, width: int, times: int) -> None:
    """The average is taken as often as asked for"""
    values = np.random.default_rng(seed).normal(size=n)
    result = submission.smooth(values, width, times=times)
    expected = values
    for _ in range(times):
        expected = np.convolve(expected, np.full(width, 1 / width), mode="valid")
    expect_equal(result.shape, expected.shape, "the shape")
    assert np.allclose(result, expected), "The smoothed values are wrong"


@pytest.mark.points(1)
def test_once_is_the_default(submission: Any) -> None:
    """Without a number of times the average is taken once"""
    result = submission.smooth(np.array([1.0, 2.0, 6.0]), 2)
    assert np.allclose(result, [1.5, 4.0]), "smooth([1, 2, 6], 2) is not [1.5, 4]"
