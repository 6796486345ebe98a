"""The hidden checks of roughness."""

from __future__ import annotations

from typing import Any

import pytest

from grader.checking import expect_close


@pytest.mark.points(2)
@pytest.mark.parametrize(
    "values, expected",
    [
        ([1.0, 4.0, 2.0], 3.0),
        ([5.0, 1.0, 2.0, 4.0, 6.0], 4.0),
        ([1.0, 2.0, 4.0, 3.0], 2.0),
        ([1.0], 0.0),
    ],
)
def test_values(submission: Any, values: list[float], expected: float) -> None:
    """The largest step between neighbours, up or down"""
    expect_close(submission.roughness(values), expected, axes="", what="the largest step")
