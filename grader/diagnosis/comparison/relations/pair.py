"""A wrong array beside the right one, and what a relation between them says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

FEWEST = 3  # different numbers that an array must hold to prove anything


@dataclass(frozen=True)
class Pair:
    """A wrong array and the right one, both in float64; `what` names the array in a sentence.

    `room` is the relative and absolute tolerance. `axes` are the names of the right array's axes,
    () if unknown. `sizes` are integers that may be the source of a factor, by name; `given` are the
    arrays among the arguments, by name.
    """

    got: Any
    want: Any
    room: tuple[float, float]
    what: str = "Your result"
    axes: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    is_bool: bool = False

    def near(self, one: Any, other: Any) -> Any:
        """The positions where two arrays have the same number."""
        return np.isclose(one, other, self.room[0], self._absolute, equal_nan=True)

    def same(self, one: Any, other: Any) -> bool:
        """Whether two arrays have the same shape and the same numbers."""
        return one.shape == other.shape and bool(self.near(one, other).all())

    @cached_property
    def _absolute(self) -> float:
        """The absolute tolerance, less if the wrong numbers are all tiny: they may still differ."""
        largest = abs(self.got[np.isfinite(self.got)]).max(initial=0.0)
        return min(self.room[1], self.room[0] * float(largest))

    def axis(self, number: int) -> str:
        """The name of an axis of the right array."""
        return self.axes[number] if self.axes else f"axis {number}"


@dataclass(frozen=True)
class Relation:
    """A relation found in one pair; `holds` tells whether another pair has it too."""

    id: str
    text: str
    holds: Callable[[Pair], bool] = field(compare=False)


def is_telling(values: Any, is_bool: bool) -> bool:
    """Whether an array holds enough different numbers for an equality to prove something."""
    found = len(np.unique(values[~np.isnan(values)]))
    return found == 2 and values.size >= 2 * FEWEST if is_bool else found >= FEWEST


def number(value: float, is_bool: bool = False) -> str:
    """A number in a sentence; a truth value by its name."""
    if is_bool:
        return str(bool(value))
    return "NaN" if math.isnan(value) else f"{value + 0.0:.6g}"  # no -0


def lower(text: str) -> str:
    """The text as the middle of a sentence."""
    return text[0].lower() + text[1:] if text.startswith(("Your ", "The ")) else text
