"""Which sizes do not fit where the learner's code stops: Tq and Tk, say. Pure.

An error has two numbers, and the call of the check has sizes with names. One such number may be a
size by chance, so a name counts only if it holds in every call that ends at this line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from grader.run.error_words import sizes_at_odds
from grader.run.facts import CaseFact, Ending
from grader.types.report import Diagnosis

_WORDS = re.compile(r"^  in words  (.*)$", re.MULTILINE)
_CALL = re.compile(r"^  call      (.*)$", re.MULTILINE)
_TENSOR = re.compile(r"\[(\w+=\d+(?:, \w+=\d+)*)\]")
_SIZE = re.compile(r"\b(\w+)=(\d+)(?=[],)]|$)")
_MOST_NAMES = 12  # of a call
_MOST_FACTORS = 4


def sizes_that_do_not_fit(cases: Sequence[CaseFact]) -> dict[str, Diagnosis]:
    """The symptom of each check that fails first in such an error, by the check's id."""
    first: dict[str, str] = {}
    stops: dict[str, list[_Stop]] = {}
    for fact in cases:
        if fact.ending in (Ending.RAISED, Ending.WRONG):
            stop = _stop(fact) if fact.ending is Ending.RAISED and fact.way else None
            first.setdefault(fact.case.check, fact.way if stop else "")
            if stop is not None:
                stops.setdefault(fact.way, []).append(stop)
    told = {way: _told(alike) for way, alike in stops.items()}
    found = {check: told.get(way) for check, way in first.items()}
    return {check: each for check, each in found.items() if each is not None}


@dataclass(frozen=True)
class _Stop:
    """The two sizes of an error, and what the call names: axes of its tensors, other numbers."""

    numbers: tuple[int, int]
    axes: Mapping[str, int]
    others: Mapping[str, int]

    @property
    def sizes(self) -> dict[str, int]:
        return {**self.others, **self.axes}


@dataclass(frozen=True)
class _Name:
    """The product of some sizes, or an axis that is divided by another number."""

    factors: tuple[str, ...]
    divisor: str = ""

    def __str__(self) -> str:
        return " * ".join(self.factors) + (f" / {self.divisor}" if self.divisor else "")

    def of(self, stop: _Stop) -> float | None:
        """The number that it names in a call, None if something in it has no name there."""
        sizes = stop.sizes
        if not sizes.keys() >= {*self.factors, *filter(None, [self.divisor])}:
            return None
        return math.prod(sizes[name] for name in self.factors) / (sizes.get(self.divisor) or 1)


def _stop(fact: CaseFact) -> _Stop | None:
    words, calls = _WORDS.search(fact.message), _CALL.findall(fact.message)
    numbers = sizes_at_odds(words[1]) if words else None
    if numbers is None:
        return None
    call = calls[-1] if calls else ""
    axes = _named(",".join(_TENSOR.findall(call)))
    others = _named(_TENSOR.sub("", call))
    return _Stop(numbers, *((axes, others) if len(axes) + len(others) <= _MOST_NAMES else ({}, {})))


def _named(text: str) -> dict[str, int]:
    """The sizes in a text by their names, without names of several sizes."""
    found: dict[str, set[int]] = {}
    for name, size in _SIZE.findall(text):
        found.setdefault(name, set()).add(int(size))
    return {name: max(sizes) for name, sizes in found.items() if len(sizes) == 1}


def _told(stops: Sequence[_Stop]) -> Diagnosis | None:
    names = [_name(stops, place) for place in (0, 1)]
    if None in names or names[0] == names[1]:
        return None
    text = f"Two sizes do not fit where your code stops: {names[0]} and {names[1]}."
    return Diagnosis("symptom:sizes", text)


def _name(stops: Sequence[_Stop], place: int) -> str | None:
    """The simplest name for a number of the errors, None if no name or more than one is simplest.

    It must hold in every call that has such sizes, and at least two numbers must speak for it.
    """

    def holds(name: _Name) -> bool:
        pairs = [(stop.numbers[place], name.of(stop)) for stop in stops]
        named = [(number, size) for number, size in pairs if size is not None]
        return len({number for number, _ in named}) > 1 and all(a == b for a, b in named)

    for alike in _names(stops):
        found = [str(name) for name in alike if holds(name)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _names(stops: Sequence[_Stop]) -> Iterator[list[_Name]]:
    """What may be named in the call with the most names, the simplest first."""
    richest = max(stops, key=lambda stop: len(stop.sizes))
    axes, others = list(richest.axes), richest.others.keys() - richest.axes.keys()
    yield [_Name((axis,)) for axis in axes]
    yield [_Name((name,)) for name in others]
    # An argument that is always as large as an axis says nothing more.
    apart = sorted(name for name in others if not any(_same(stops, axis, name) for axis in axes))
    yield [_Name((axis,), name) for axis in axes for name in apart]
    for count in range(2, _MOST_FACTORS + 1):
        yield [_Name(factors) for factors in combinations([*axes, *apart], count)]


def _same(stops: Sequence[_Stop], axis: str, other: str) -> bool:
    """Whether an axis and another number are the same in every call that has both."""
    both = [(s.axes[axis], s.others[other]) for s in stops if axis in s.axes and other in s.others]
    return all(one == another for one, another in both)
