"""Relations of plain numbers: what holds between those of all failing calls and the right ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

FEWEST = 3  # different right numbers that must agree
_NEAR = 1e-5  # relative, between numbers that are called equal
Numbers = Sequence[tuple[float, float]]  # what came, and what was expected

_MAPS: dict[str, tuple[str, Callable[[float], float]]] = {
    "inverse": ("1 over the right one", lambda number: 1 / number),
    "abs": ("the right one without its sign", abs),
    "whole": ("the right one, rounded to a whole number", round),
    "floor": ("the right one, rounded down to a whole number", math.floor),
    "ceil": ("the right one, rounded up to a whole number", math.ceil),
    "square": ("the square of the right one", lambda number: number**2),
    "root": ("the square root of the right one", math.sqrt),
    "log": ("the logarithm of the right one", math.log),
    "exp": ("e to the power of the right one", math.exp),
}


def relation_of_numbers(numbers: Numbers) -> tuple[str, str] | None:
    """The id and the sentence of the first relation that holds in every call."""
    if len({want for _, want in numbers}) < FEWEST:
        return None
    for id, words, right in _relations(numbers):
        if all(_is(right, *pair) for pair in numbers):
            return id, f"Your result is {words}, in each failing call."
    return None


def _relations(numbers: Numbers) -> Iterator[tuple[str, str, Callable[[float], float]]]:
    got, want = max(numbers, key=lambda pair: abs(pair[1]))
    yield "one-number", f"{got:.6g}", lambda right: got
    if got and want:
        yield "factor", f"the right one times {got / want:.6g}", lambda right: right * got / want
    yield "offset", f"the right one plus {got - want:.6g}", lambda right: right + got - want
    for id, (words, function) in _MAPS.items():
        yield f"map:{id}", words, function


def _is(function: Callable[[float], float], got: float, want: float) -> bool:
    try:
        return math.isclose(got, function(want), rel_tol=_NEAR)
    except (ArithmeticError, ValueError):
        return False
