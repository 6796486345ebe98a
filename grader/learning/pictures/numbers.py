"""Formats the numbers of one tensor, all in the same way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import chain

from grader.learning.pictures.types import Number, Rows

_LARGE, _SMALL = 1e5, 0.1  # outside this range, two decimals are too many or too few


def number_format(numbers: Iterable[Number]) -> Callable[[Number], str]:
    """One format for all of `numbers`: with no, two or three decimals, or an exponent.

    Booleans are "yes" and "no"; other values that are not finite are "inf", "-inf" and "nan". It
    never writes "-0.00".
    """
    finite = [abs(number) for number in numbers if is_finite(number)]
    largest = max(finite, default=0.0)
    style = ".2f"
    if largest >= _LARGE:
        style = ".2e"
    elif all(number == int(number) for number in finite):
        style = ".0f"
    elif largest < _SMALL:
        style = ".3f"

    def show(number: Number) -> str:
        if isinstance(number, bool):
            return "yes" if number else "no"
        if not is_finite(number):
            return str(number)
        text = f"{number:{style}}"
        return text.removeprefix("-") if float(text) == 0 else text

    return show


def short(number: float) -> str:
    """Three digits of a number of any size: 65.5k, 1.07G, 0.25."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= 0.9995 * size:
            return f"{float(f'{number / size:.3g}'):g}{letter}"
    return f"{number:.3g}"


def is_finite(number: Number) -> bool:
    """Whether it is a finite number."""
    return isinstance(number, (int, float)) and math.isfinite(number)


def every(tables: Iterable[Rows]) -> list[Number]:
    """All numbers of some tables."""
    return list(chain.from_iterable(chain.from_iterable(tables)))
