"""All numbers of one tensor are written alike."""

import math

import pytest

from grader.learning.pictures.numbers import number_format, short


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


@pytest.mark.parametrize(
    "number, text",
    [
        (0.25, "0.25"),
        (7, "7"),
        (999, "999"),
        (999.6, "1k"),
        (65536, "65.5k"),
        (131072, "131k"),
        (999_900, "1M"),
        (1 << 30, "1.07G"),
        (5e12, "5000G"),
    ],
)
def test_a_number_of_any_size_in_three_digits(number: float, text: str) -> None:
    assert short(number) == text
