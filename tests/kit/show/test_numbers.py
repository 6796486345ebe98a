"""All numbers of one tensor are written alike."""

from __future__ import annotations

import math

import pytest

from grader.show.numbers import number_format


@pytest.mark.parametrize(
    "numbers, written",
    [
        ([1.0, 2.0, -3.0], ["1", "2", "-3"]),
        ([1, 20], ["1", "20"]),
        ([0.25, 1.0], ["0.25", "1.00"]),
        ([0.5, -0.001], ["0.50", "0.00"]),
        ([-0.0, 3.0], ["0", "3"]),
        ([0.05, -0.0125], ["0.050", "-0.013"]),
        ([1.5, -math.inf, math.inf, math.nan], ["1.50", "-inf", "inf", "nan"]),
        ([-math.inf], ["-inf"]),
        ([True, False], ["yes", "no"]),
        ([1.5e8, 1.0], ["1.50e+08", "1.00e+00"]),
        ([], []),
    ],
)
def test_one_format_for_all(numbers: list[float], written: list[str]) -> None:
    show = number_format(numbers)
    assert [show(number) for number in numbers] == written
