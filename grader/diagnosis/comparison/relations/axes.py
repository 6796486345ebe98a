"""Relations of the whole array and of its axes: their order, sizes and repetitions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from grader.diagnosis.comparison.relations.pair import Pair, Relation, is_telling, number
from grader.types.text import listed

_MOST_AXES = 5
_REDUCTIONS: dict[str, tuple[str, Callable[[Any, int], Any]]] = {
    "sum": ("summed over", lambda array, axis: array.sum(axis)),
    "mean": ("averaged over", lambda array, axis: array.mean(axis)),
    "max": ("reduced to the largest number over", lambda array, axis: array.max(axis)),
    "first": ("cut to the first position of", lambda array, axis: array.take(0, axis)),
    "last": ("cut to the last position of", lambda array, axis: array.take(-1, axis)),
}


def constant(pair: Pair) -> Iterator[Relation]:
    """The same number at every position."""
    first = pair.got.flat[0]
    if pair.got.size < 2:
        return
    is_varied = is_telling(pair.want, pair.is_bool) or (pair.is_bool and np.ptp(pair.want) > 0)
    if is_varied and pair.same(pair.got, np.full_like(pair.got, first)):
        words = number(first, pair.is_bool)
        yield Relation(
            "constant",
            f"{pair.what} is {words} at every position.",
            lambda other: other.same(other.got, np.full_like(other.got, first)),
        )


def argument(pair: Pair) -> Iterator[Relation]:
    """One of the arguments, unchanged."""
    if is_telling(pair.got, pair.is_bool):
        for name in pair.given:
            yield Relation(
                f"argument:{name}",
                f"{pair.what} is {name} itself, number for number.",
                lambda other, name=name: (  # type: ignore[misc]
                    name in other.given and other.same(other.got, other.given[name])
                ),
            )


def axes(pair: Pair) -> Iterator[Relation]:
    """The right numbers with their axes in another order; swaps of two axes come first."""
    count = pair.want.ndim
    if not 2 <= count <= _MOST_AXES or pair.got.ndim != count:
        return
    if not is_telling(pair.want, pair.is_bool):
        return
    orders = [order for order in itertools.permutations(range(count)) if _moved(order)]
    for order in sorted(orders, key=lambda order: len(_moved(order))):
        turned = pair.want.transpose(order)
        if turned.shape != pair.got.shape or pair.same(turned, pair.want):
            continue
        moved = _moved(order)
        names = [pair.axis(number) for number in moved]
        if len(moved) == 2:
            text = (
                f"{pair.what} holds the right numbers with {listed(names)} swapped: "
                "everything else is right."
            )
        else:
            given = ", ".join(pair.axis(number) for number in order)
            wanted = ", ".join(pair.axis(number) for number in range(count))
            text = (
                f"{pair.what} holds the right numbers with the axes in another order: "
                f"({given}) instead of ({wanted})."
            )
        yield Relation(
            f"axes:{''.join(map(str, order))}",
            text,
            lambda other, order=order: (  # type: ignore[misc]
                other.want.ndim == len(order) and other.same(other.got, other.want.transpose(order))
            ),
        )


def _moved(order: tuple[int, ...]) -> list[int]:
    return [place for place, number in enumerate(order) if place != number]


def shape(pair: Pair) -> Iterator[Relation]:
    """The right numbers in the right order, in another shape."""
    if pair.got.shape == pair.want.shape or pair.got.size != pair.want.size:
        return
    if not is_telling(pair.want, pair.is_bool):
        return

    def same_order(other: Pair) -> bool:
        return other.same(other.got.ravel(), other.want.ravel())

    def without_ones(array: Any) -> list[int]:
        return [size for size in array.shape if size != 1]

    if without_ones(pair.got) == without_ones(pair.want):
        missing = pair.want.ndim - pair.got.ndim
        words = "an axis of size 1 elsewhere"
        if missing:
            many = "an axis" if abs(missing) == 1 else f"{abs(missing)} axes"
            words = f"{many} of size 1 too {'few' if missing > 0 else 'many'}"
        yield Relation(
            "axis-of-one",
            f"{pair.what} holds the right numbers in the right order, with {words}.",
            lambda other: same_order(other) and without_ones(other.got) == without_ones(other.want),
        )
    yield Relation(
        "shape",
        f"{pair.what} holds the right numbers in the right order, in another shape.",
        same_order,
    )


def longer(pair: Pair) -> Iterator[Relation]:
    """Too many or too few positions along one axis; the others are right.

    How many depends on the case, and the report may show another one.
    """
    if pair.got.ndim != pair.want.ndim or not is_telling(pair.want, pair.is_bool):
        return
    axes = [a for a in range(pair.want.ndim) if pair.got.shape[a] != pair.want.shape[a]]
    if len(axes) != 1:
        return
    [axis] = axes
    more = pair.got.shape[axis] > pair.want.shape[axis]
    for at in ("last", "first"):
        yield Relation(
            f"too-{'many' if more else 'few'}-{at}:{axis}",
            f"{pair.what} has too {'many' if more else 'few'} positions along {pair.axis(axis)}. "
            f"The {at} ones are {'too many' if more else 'missing'}; the others are right.",
            lambda other, at=at: _is_longer(other, axis, more, at),  # type: ignore[misc]
        )


def _is_longer(pair: Pair, axis: int, more: bool, at: str) -> bool:
    if pair.got.ndim != pair.want.ndim or axis >= pair.want.ndim:
        return False
    got, want = pair.got.shape[axis], pair.want.shape[axis]
    if got == want or (got > want) is not more:
        return False
    kept = np.arange(min(got, want)) + (0 if at == "last" else abs(got - want))
    long, short = (pair.got, pair.want) if more else (pair.want, pair.got)
    return bool(short.size) and pair.same(long.take(kept, axis), short)


def reduced(pair: Pair) -> Iterator[Relation]:
    """One axis too few, because it was summed away or only one of its positions is left."""
    if pair.got.ndim != pair.want.ndim - 1 or not is_telling(pair.want, pair.is_bool):
        return
    for axis, size in enumerate(pair.want.shape):
        for id, (words, _) in _REDUCTIONS.items():
            if size >= 2 and is_telling(pair.got, pair.is_bool):
                yield Relation(
                    f"reduced:{id}:{axis}",
                    f"{pair.what} is the right one {words} {pair.axis(axis)}, an axis that must "
                    "stay.",
                    lambda other, axis=axis, id=id: (  # type: ignore[misc]
                        axis < other.want.ndim
                        and other.same(other.got, _REDUCTIONS[id][1](other.want, axis))
                    ),
                )


def along_an_axis(pair: Pair) -> Iterator[Relation]:
    """The right slices along one axis, in another order."""
    for axis, size in enumerate(pair.want.shape):
        if size < 2:
            continue
        name = pair.axis(axis)
        if is_telling(pair.want, pair.is_bool):
            yield Relation(
                f"reversed:{axis}",
                f"{pair.what} is the right one with {name} reversed.",
                lambda other, axis=axis: (  # type: ignore[misc]
                    axis < other.want.ndim and other.same(other.got, np.flip(other.want, axis))
                ),
            )
            yield Relation(
                f"shuffled:{axis}",
                f"{pair.what} holds the right slices along {name}, in another order.",
                lambda other, axis=axis: _is_shuffled(other, axis),  # type: ignore[misc]
            )


def _is_shuffled(pair: Pair, axis: int) -> bool:
    if axis >= pair.want.ndim or pair.got.shape[axis] > 64:
        return False
    left = list(np.moveaxis(pair.want, axis, 0))
    for piece in np.moveaxis(pair.got, axis, 0):
        match = next((place for place, other in enumerate(left) if pair.same(piece, other)), None)
        if match is None:
            return False
        left.pop(match)
    return True


def repeated(pair: Pair) -> Iterator[Relation]:
    """Equal slices along an axis along which the right result varies."""
    if not is_telling(pair.want, pair.is_bool):
        return
    for axis, size in enumerate(pair.want.shape):
        if size >= 2 and not _is_repeated(pair, pair.want, axis):
            yield Relation(
                f"same-along:{axis}",
                f"{pair.what} is the same for every position of {pair.axis(axis)}; "
                "the right one is not.",
                lambda other, axis=axis: (  # type: ignore[misc]
                    axis < other.got.ndim
                    and not np.isnan(other.got).any()  # NaN everywhere is a symptom of its own
                    and _is_repeated(other, other.got, axis)
                    and not _is_repeated(other, other.want, axis)
                ),
            )


def truth_repeated(pair: Pair) -> Iterator[Relation]:
    """As `repeated`, for booleans: it comes before the place of a wrong one, which says little."""
    if pair.is_bool:
        yield from repeated(pair)


def _is_repeated(pair: Pair, array: Any, axis: int) -> bool:
    return pair.same(array, np.broadcast_to(array.take([0], axis), array.shape))
