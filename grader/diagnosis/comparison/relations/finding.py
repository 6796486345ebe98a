"""The relation that the kit recognizes between a wrong array and the right one.

A relation counts only if it could have failed: arrays of equal numbers, or axes of size 1, prove
nothing. Each one states a fact about the numbers, never a guess about the code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from grader.diagnosis.comparison.relations.axes import (
    along_an_axis,
    argument,
    axes,
    constant,
    longer,
    reduced,
    repeated,
    shape,
    truth_repeated,
)
from grader.diagnosis.comparison.relations.numbers import (
    factor,
    mapped,
    offset,
    one_hot,
    rounded,
    row_factor,
    row_offset,
    row_power,
    shared_out,
    sums,
    turned_round,
)
from grader.diagnosis.comparison.relations.pair import Pair, Relation
from grader.diagnosis.comparison.relations.parts import (
    blocked_elsewhere,
    places,
    slices,
    stretches,
    wherever,
)

_Finder = Callable[[Pair], Iterator[Relation]]
_NEAR = 1e-5  # relative, between plain numbers that are called equal
_TELLING = 4  # pairs in which to look for a relation


def relation_of(pairs: Sequence[Pair]) -> Relation | None:
    """The simplest relation that holds for every value of all pairs and proves something in one."""
    is_one_shape = all(pair.got.shape == pair.want.shape for pair in pairs)
    return _first(pairs, (*_OF_SHAPES, *(_OF_VALUES if is_one_shape else ()), places))


def relation_of_numbers(numbers: Sequence[tuple[float, float]]) -> Relation | None:
    """The relation that holds in every call between the number that came and the right one."""
    got, want = np.array(numbers, float).T
    found = _first([Pair(got, want, (_NEAR, 0.0))], (constant, factor, offset, mapped))
    if found is None:
        return None
    return replace(found, text=found.text.replace("at every position", "in each failing call"))


def _first(pairs: Sequence[Pair], finders: Iterable[_Finder]) -> Relation | None:
    """The first relation of all pairs.

    If several relations share an id, it is unclear which one to state, so all of them are skipped.
    """
    if any(_is_void(pair) for pair in pairs):
        return None
    for find in finders:
        for pair in pairs[:_TELLING]:
            found = [each for each in find(pair) if all(map(each.holds, pairs))]
            times = Counter(relation.id for relation in found)
            for relation in found:
                if times[relation.id] == 1:
                    return relation
    return None


def _is_void(pair: Pair) -> bool:
    """Whether there is nothing to compare: no numbers, or no wrong ones."""
    if not pair.got.size or not pair.want.size:
        return True
    is_alike = pair.got.shape == pair.want.shape
    return is_alike and np.allclose(pair.got, pair.want, *pair.room, equal_nan=True)


_OF_SHAPES: tuple[_Finder, ...] = (constant, argument, axes, shape, longer, reduced)
# Between arrays of one shape.
_OF_VALUES: tuple[_Finder, ...] = (
    *(turned_round, factor, offset, mapped),
    # A check can be stricter than a replay, so what is almost right everywhere seems right in part.
    partial(rounded, fewest=4),
    truth_repeated,
    *(wherever, along_an_axis, slices, stretches, one_hot, row_power, sums, row_factor, repeated),
    *(row_offset, shared_out, blocked_elsewhere, rounded),
)
