"""Whether a right value is among the tensors that the learner's code makes. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

_HIDDEN = -1e4  # whatever is below it may stand for -inf
_PIECES = 32  # along an axis, at most, that may have been made one by one
_LEAST = 4  # numbers of a value: fewer may be the same by chance


@dataclass(frozen=True)
class Match:
    """Where among the tensors a value is, and how it differs from the right one.

    `order` are its axes in the learner's order, () if that is the right one; `factor` is by how
    much it is too large.
    """

    place: int
    order: tuple[int, ...] = ()
    factor: float = 1.0


@dataclass(frozen=True)
class Tolerance:
    """The relative and the absolute room between two computations of the same numbers."""

    relative: float
    absolute: float

    def holds(self, one: Any, other: Any) -> bool:
        """Whether two arrays of one shape are equal; -inf in `other` is any very small number."""
        hidden = numpy.isneginf(other)
        if hidden.any():
            if not (one[hidden] < _HIDDEN).all():
                return False
            one, other = one[~hidden], other[~hidden]
        return bool(numpy.allclose(one, other, self.relative, self.absolute, equal_nan=True))


def is_telling(right: Any) -> bool:
    """Whether a value has enough different numbers to be known by them."""
    finite = right[numpy.isfinite(right)]
    return finite.size >= _LEAST and bool(numpy.ptp(finite) > 0)


def match(right: Any, made: Sequence[Any], tolerance: Tolerance) -> Match | None:
    """The best match: as it is, in pieces, in another order, hidden in part, or with a factor.

    Of several the last one.
    """
    found = _as_it_is(right, made, tolerance)
    if found is not None and not found.order:
        return found
    return (
        _in_pieces(right, made, tolerance)
        or found
        or _hidden_in_part(right, made, tolerance)
        or _with_a_factor(right, made, tolerance)
    )


def _as_it_is(right: Any, made: Sequence[Any], tolerance: Tolerance) -> Match | None:
    turned = None
    for place, array in _of_size(right.size, made):
        for order in _orders(right, array):
            if tolerance.holds(array.reshape(-1), right.transpose(order).reshape(-1)):
                if _is_in_order(order, right.shape):
                    return Match(place)
                turned = turned or Match(place, order)
    return turned


def _in_pieces(right: Any, made: Sequence[Any], tolerance: Tolerance) -> Match | None:
    """Made one by one along an axis or two: a head at a time, say."""
    ends = _ends_of_pieces(right, made, tolerance, 2)
    return Match(ends[1]) if ends is not None else None


def _ends_of_pieces(
    right: Any, made: Sequence[Any], tolerance: Tolerance, depth: int
) -> tuple[int, int] | None:
    """The places of the first and the last piece, which are there in their order.

    In another order they may belong to several tensors, such as an argument and what is new.
    """
    for axis, size in enumerate(right.shape):
        if not 1 < size <= _PIECES or right.size // size < _LEAST:
            continue
        first, last = len(made), -1
        for number in reversed(range(size)):
            piece, before = right.take(number, axis), made[: first + 1]
            found = _as_it_is(piece, before, tolerance)
            ends = (found.place, found.place) if found is not None and not found.order else None
            if ends is None and depth > 1:
                ends = _ends_of_pieces(piece, before, tolerance, depth - 1)
            if ends is None:
                break
            first, last = ends[0], max(last, ends[1])
        else:
            return first, last
    return None


def _hidden_in_part(right: Any, made: Sequence[Any], tolerance: Tolerance) -> Match | None:
    """With very small numbers at some positions, as of scores that are scaled after the mask."""
    if numpy.isneginf(right).any():
        return None
    for place, array in _of_size(right.size, made):
        if not has_rows_of(right, array):
            continue
        array = array.reshape(right.shape)
        seen = ~(array <= _HIDDEN)  # NaN is seen
        if not seen.all() and is_telling(right[seen]) and tolerance.holds(array[seen], right[seen]):
            return Match(place)
    return None


def _with_a_factor(right: Any, made: Sequence[Any], tolerance: Tolerance) -> Match | None:
    finite = numpy.isfinite(right)
    top = numpy.abs(numpy.where(finite, right, 0.0)).argmax()
    for place, array in _of_size(right.size, made):
        if not has_rows_of(right, array):
            continue
        array = array.reshape(right.shape)
        factor = float(array.reshape(-1)[top] / right.reshape(-1)[top])
        if math.isfinite(factor) and factor > 0 and tolerance.holds(array, right * factor):
            return Match(place, factor=factor)
    return None


def has_rows_of(right: Any, array: Any) -> bool:
    """Whether an array has the size and the last two axes of a value; those before may be one."""
    return bool(array.size == right.size and array.shape[-2:] == right.shape[-2:])


def with_hidden(right: Any, array: Any) -> Any:
    """An array of a value's shape with -inf for every number that stands for one of the value's."""
    return numpy.where(numpy.isneginf(right) & (array < _HIDDEN), right, array)


def _of_size(size: int, made: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    for place in reversed(range(len(made))):
        if made[place].size == size:
            yield place, made[place]


def _orders(right: Any, array: Any) -> Iterator[tuple[int, ...]]:
    """The orders of the right value's axes that may give the shape of another array.

    Axes of size 1 do not count. The first ones may be one, as a batch and its heads may, and one
    may be several, as heads in groups are.
    """
    shape = tuple(size for size in array.shape if size > 1)
    long = [axis for axis, size in enumerate(right.shape) if size > 1]
    short = tuple(axis for axis, size in enumerate(right.shape) if size == 1)
    merged = len(long) - len(shape)
    if not shape:
        return
    for order in itertools.permutations(long):
        sizes = [right.shape[axis] for axis in order]
        if merged < 0:
            fits = _is_cut(shape, sizes)
        else:
            fits = (math.prod(sizes[: merged + 1]), *sizes[merged + 1 :]) == shape
        if fits:
            yield (*short, *order)


def _is_cut(shape: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether a shape has these sizes if some of its neighbouring axes are one."""
    left = list(shape)
    for size in sizes:
        product = 1
        while left and product < size:
            product *= left.pop(0)
        if product != size:
            return False
    return not left


def _is_in_order(order: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    long = [axis for axis in order if shape[axis] > 1]
    return long == sorted(long)
