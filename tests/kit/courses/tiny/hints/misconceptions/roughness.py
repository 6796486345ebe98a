"""Known misconceptions of the stage roughness."""

from __future__ import annotations

from itertools import pairwise

from grader.misconceptions import misconception


@misconception(
    "rough_upwards",
    replaces="roughness",
    says="You look at steps upwards only. A fall is a step too.",
    hint=1,
)
def rough_upwards(values: list[float]) -> float:
    return max((b - a for a, b in pairwise(values)), default=0.0)


@misconception(
    "rough_range",
    replaces="roughness",
    says="You measure from the lowest to the highest value. They need not be neighbours.",
    hint=1,
)
def rough_range(values: list[float]) -> float:
    return max(values) - min(values) if values else 0.0


@misconception(
    "rough_from_the_first",
    replaces="roughness",
    says="You measure every value against the first one, not against its neighbour.",
    hint=3,
)
def rough_from_the_first(values: list[float]) -> float:
    return max((abs(value - values[0]) for value in values), default=0.0)
