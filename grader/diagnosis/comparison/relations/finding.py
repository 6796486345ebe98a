"""The relation that the kit recognizes between a wrong array and the right one.

A relation counts only if it could have failed: arrays of equal numbers, or axes of size 1, prove
nothing. Each one states a fact about the numbers, never a guess about the code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from grader.diagnosis.comparison.relations.axes import (
    along_an_axis,
    along_two_axes,
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

_TELLING = 4  # pairs in which to look for a relation


def relation_of(pairs: Sequence[Pair]) -> Relation | None:
    """The simplest relation that holds for every value of all pairs, and proves something in one.

    If several relations share an id, it is unclear which one to state, so all of them are skipped.
    """
    if any(_is_void(pair) for pair in pairs):
        return None
    for find in _ALL:
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


_ALL: tuple[Callable[[Pair], Iterator[Relation]], ...] = (
    *(constant, argument, axes, shape, longer, reduced, turned_round, factor, offset),
    mapped,
    # A check can be stricter than a replay, so what is almost right everywhere seems right in part.
    partial(rounded, fewest=4),
    truth_repeated,
    *(wherever, slices, along_an_axis, one_hot, row_power, sums, row_factor, repeated, row_offset),
    *(shared_out, stretches, blocked_elsewhere, rounded, along_two_axes, places),
)
