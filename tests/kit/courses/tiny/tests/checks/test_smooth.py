"""The hidden checks of smooth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grader.checking import expect_close


@pytest.mark.points(3)
@pytest.mark.parametrize("n, width, times", [(6, 2, 2), (9, 3, 2), (12, 3, 4), (5, 2, 0)])
def test_values(submission: Any, rand: Any, n: int, width: int, times: int) -> None:
    """The average is taken as often as asked for"""
    values = rand(n=n)
    result = submission.smooth(values, width, times=times)
    expected = values
    for _ in range(times):
        expected = np.convolve(expected, np.full(width, 1 / width), mode="valid")
    expect_close(result, expected, axes="windows", what="the smoothed curve")


@pytest.mark.points(1)
def test_once_is_the_default(submission: Any) -> None:
    """Without a number of times the average is taken once"""
    result = submission.smooth(np.array([1.0, 2.0, 6.0]), 2)
    expect_close(result, np.array([1.5, 4.0]), axes="windows", what="the curve smoothed once")
