"""The relations that the kit recognizes between a wrong array and the right one.

A relation counts only if it could have failed: arrays of equal numbers, or axes of size 1, prove
nothing. Each one states a fact about the numbers, never a guess about the code.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from grader.types.text import listed

_FEWEST = 3  # different numbers that an array must hold to prove anything
_MOST_AXES = 5
_TELLING = 4  # pairs in which to look for a relation
_COARSE = 0.4  # of a rounded result: the largest error, in units of its last digit
_DIGITS = 15  # at most
_FAR = 1e-2  # between two shares of one that no rounding explains
_PARTS = 6  # of an axis, in words such as 2/3


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


def is_telling(values: Any, is_bool: bool) -> bool:
    """Whether an array holds enough different numbers for an equality to prove something."""
    found = len(np.unique(values[~np.isnan(values)]))
    return found == 2 and values.size >= 2 * _FEWEST if is_bool else found >= _FEWEST


# The whole result


def _constant(pair: Pair) -> Iterator[Relation]:
    first = pair.got.flat[0]
    if is_telling(pair.want, pair.is_bool) and pair.same(pair.got, np.full_like(pair.got, first)):
        words = _number(first, pair.is_bool)
        yield Relation(
            "constant",
            f"{pair.what} is {words} at every position.",
            lambda other: other.same(other.got, np.full_like(other.got, first)),
        )


def _argument(pair: Pair) -> Iterator[Relation]:
    if is_telling(pair.got, pair.is_bool):
        for name in pair.given:
            yield Relation(
                f"argument:{name}",
                f"{pair.what} is {name} itself, number for number.",
                lambda other, name=name: (  # type: ignore[misc]
                    name in other.given and other.same(other.got, other.given[name])
                ),
            )


# Axes


def _axes(pair: Pair) -> Iterator[Relation]:
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


def _shape(pair: Pair) -> Iterator[Relation]:
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
            f"{pair.what} holds the right numbers in the right order, with {words}: "
            f"its shape is {list(pair.got.shape)} instead of {list(pair.want.shape)}.",
            lambda other: same_order(other) and without_ones(other.got) == without_ones(other.want),
        )
    yield Relation(
        "shape",
        f"{pair.what} holds the right numbers in the right order, in another shape.",
        same_order,
    )


def _longer(pair: Pair) -> Iterator[Relation]:
    """Too many or too few positions along one axis; the others are right."""
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
            f"{pair.what} has too {'many' if more else 'few'} positions along {pair.axis(axis)}: "
            f"{pair.got.shape[axis]} instead of {pair.want.shape[axis]}. The {at} ones are "
            f"{'too many' if more else 'missing'}; the others are right.",
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


_REDUCTIONS: dict[str, tuple[str, Callable[[Any, int], Any]]] = {
    "sum": ("summed over", lambda array, axis: array.sum(axis)),
    "mean": ("averaged over", lambda array, axis: array.mean(axis)),
    "max": ("reduced to the largest number over", lambda array, axis: array.max(axis)),
    "first": ("cut to the first position of", lambda array, axis: array.take(0, axis)),
    "last": ("cut to the last position of", lambda array, axis: array.take(-1, axis)),
}


def _reduced(pair: Pair) -> Iterator[Relation]:
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


def _along_an_axis(pair: Pair) -> Iterator[Relation]:
    """The right slices along one axis, in another order."""
    if pair.got.shape != pair.want.shape:
        return
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
    if pair.got.shape != pair.want.shape or axis >= pair.want.ndim or pair.got.shape[axis] > 64:
        return False
    left = list(np.moveaxis(pair.want, axis, 0))
    for piece in np.moveaxis(pair.got, axis, 0):
        match = next((place for place, other in enumerate(left) if pair.same(piece, other)), None)
        if match is None:
            return False
        left.pop(match)
    return True


def _repeated(pair: Pair) -> Iterator[Relation]:
    """Equal slices along an axis along which the right result varies."""
    if pair.got.shape != pair.want.shape or not is_telling(pair.want, pair.is_bool):
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
                ),
            )


def _truth_repeated(pair: Pair) -> Iterator[Relation]:
    """The same for truth values, of which a wrong one tells little: comes before where it is."""
    if pair.is_bool:
        yield from _repeated(pair)


def _is_repeated(pair: Pair, array: Any, axis: int) -> bool:
    return pair.same(array, np.broadcast_to(array.take([0], axis), array.shape))


def _symmetric(pair: Pair) -> Iterator[Relation]:
    """Two axes may change places, which changes the right result."""
    for one, other in itertools.combinations(range(pair.got.ndim), 2):
        if pair.got.shape != pair.want.shape or pair.got.shape[one] < _FEWEST:
            continue
        if _is_symmetric(pair, pair.want, one, other) or not is_telling(pair.got, pair.is_bool):
            continue
        yield Relation(
            f"symmetric:{one}{other}",
            f"{pair.what} stays the same if {pair.axis(one)} and {pair.axis(other)} change places; "
            "the right one does not.",
            lambda each, one=one, other=other: (  # type: ignore[misc]
                not np.isnan(each.got).any() and _is_symmetric(each, each.got, one, other)
            ),
        )


def _is_symmetric(pair: Pair, array: Any, one: int, other: int) -> bool:
    return other < array.ndim and pair.same(array, array.swapaxes(one, other))


# Numbers


def _turned_round(pair: Pair) -> Iterator[Relation]:
    if pair.is_bool and is_telling(pair.want, True):
        yield Relation(
            "turned-round",
            f"{pair.what} is True exactly where False is expected, and False where True is.",
            lambda other: other.is_bool and other.same(other.got, 1 - other.want),
        )
    blocked = np.isneginf(pair.want)
    if pair.got.shape == pair.want.shape and blocked.any() and not blocked.all():
        yield Relation(
            "blocked-turned-round",
            f"{pair.what} holds -inf exactly where a finite number is expected, and a finite "
            "number where -inf is.",
            lambda other: (
                other.got.shape == other.want.shape
                and bool((np.isneginf(other.got) != np.isneginf(other.want)).all())
            ),
        )


def _factor(pair: Pair) -> Iterator[Relation]:
    """A constant factor, named after the size that it comes from if there is just one."""
    if not is_telling(abs(pair.want[np.isfinite(pair.want)]), False):
        return
    factor = _ratio(pair)
    if factor is None or abs(factor - 1) < 1e-9:
        return
    for name in _names_of(factor, pair.sizes):
        yield Relation(
            "factor-of-size",
            f"{pair.what} is the right one times {name}, at every position.",
            lambda other, name=name: _is_times(  # type: ignore[misc]
                other, _named_numbers(other.sizes, least=1).get(name)
            ),
        )
    yield Relation(
        "factor",
        f"{pair.what} is the right one times {factor:.6g}, at every position.",
        lambda other: _is_times(other, factor),
    )
    distinct = {size: name for name, size in reversed(list(pair.sizes.items()))}
    for name, value in _of_one_size({name: size for size, name in distinct.items()}).items():
        yield Relation(
            "factor-times-size",
            f"{pair.what} is the right one times {factor / value:.4g} * {name}, at every position.",
            lambda other, name=name, value=value: _is_times(  # type: ignore[misc]
                other, factor / value * _of_one_size(other.sizes, least=1).get(name, math.nan)
            ),
        )
    yield Relation(
        "some-factor",
        f"{pair.what} is the right one times the same number at every position "
        f"({factor:.4g} for this input).",
        lambda other: _is_times(other, _ratio(other)),
    )


def _is_times(pair: Pair, factor: float | None) -> bool:
    is_number = factor is not None and not math.isnan(factor)
    return is_number and pair.same(pair.got, pair.want * factor)


def _ratio(pair: Pair) -> float | None:
    """The factor at the largest finite number."""
    finite = np.isfinite(pair.want) & (pair.want != 0)
    if pair.got.shape != pair.want.shape or not finite.any():
        return None
    where = np.unravel_index(np.where(finite, abs(pair.want), 0).argmax(), pair.want.shape)
    ratio = float(pair.got[where] / pair.want[where])
    return ratio if math.isfinite(ratio) and ratio != 0 else None


def _of_one_size(sizes: Mapping[str, int], least: int = 2) -> dict[str, float]:
    """The factors that come from one size, which is at `least` so large, by name."""
    found: dict[str, float] = {}
    for name, size in sizes.items():
        if size >= least:
            found[name] = size
            found[f"1 / {name}"] = 1 / size
            found[f"sqrt({name})"] = math.sqrt(size)
            found[f"1 / sqrt({name})"] = 1 / math.sqrt(size)
    return found


def _named_numbers(sizes: Mapping[str, int], least: int = 2) -> dict[str, float]:
    """The factors that come from one size, or from two, by name."""
    found = _of_one_size(sizes, least)
    several = {name: size for name, size in sizes.items() if size >= least}
    for one, other in itertools.permutations(several, 2):
        found[f"sqrt({one} / {other})"] = math.sqrt(several[one] / several[other])
    return found


def _names_of(factor: float, sizes: Mapping[str, int]) -> list[str]:
    """The possible names of a factor; among equal sizes, only the first one.

    A round number is more often one that somebody typed than the ratio of two sizes.
    """
    distinct = {size: name for name, size in reversed(list(sizes.items()))}
    is_round = math.isclose(factor, float(f"{factor:.1g}"), rel_tol=1e-4)
    numbers = _of_one_size if is_round else _named_numbers
    named = numbers({name: size for size, name in distinct.items()})
    return [name for name, value in named.items() if math.isclose(factor, value, rel_tol=1e-4)]


def _offset(pair: Pair) -> Iterator[Relation]:
    """A constant difference, or one that depends only on the last axis."""
    if pair.is_bool or not is_telling(pair.want, False):
        return
    off = _difference(pair)
    if off is None or not off.any():
        return
    yield Relation(
        "offset",
        f"{pair.what} is the right one plus {off.flat[0]:.6g}, at every position.",
        lambda other: other.same(other.got, other.want + off.flat[0]),
    )
    rows = pair.want.size // pair.want.shape[-1] if pair.want.ndim > 1 else 1
    is_whole = pair.room == (0.0, 0.0)  # whole numbers have no bias
    if rows >= _FEWEST and pair.want.shape[-1] >= 2 and not is_whole:
        name = pair.axis(pair.want.ndim - 1)
        yield Relation(
            "offset-of-feature",
            f"{pair.what} differs from the right one by a number that depends on the position "
            f"along {name} alone, as if a bias had been added or left out.",
            _is_shifted_by_feature,
        )


def _difference(pair: Pair) -> Any:
    if pair.got.shape != pair.want.shape or not np.isfinite(pair.want).all():
        return None
    return pair.got - pair.want if np.isfinite(pair.got).all() else None


def _is_shifted_by_feature(pair: Pair) -> bool:
    off = _difference(pair)
    if off is None or off.ndim < 2:
        return False
    first = off.reshape(-1, off.shape[-1])[0]
    return pair.same(pair.got, pair.want + first)


def _row_offset(pair: Pair) -> Iterator[Relation]:
    """A difference that is the same throughout each row along the last axis."""
    is_whole = pair.room == (0.0, 0.0)  # as are the neighbours of numbers that are counted
    if is_whole or pair.want.ndim < 2 or pair.want.shape[-1] < _FEWEST:
        return
    if is_telling(pair.want, pair.is_bool):
        yield Relation(
            "offset-of-row",
            f"{pair.what} differs from the right one by the same number throughout a row along "
            f"{pair.axis(pair.want.ndim - 1)}, and by another one in other rows.",
            _is_shifted_by_row,
        )


def _is_shifted_by_row(pair: Pair) -> bool:
    off = _difference(pair)
    return off is not None and off.ndim >= 2 and pair.same(pair.got, pair.want + off[..., :1])


def _row_factor(pair: Pair) -> Iterator[Relation]:
    """Each row along the last axis is the right one times a factor of its own."""
    if pair.want.ndim < 2 or pair.want.shape[-1] < _FEWEST or not is_telling(pair.want, False):
        return
    name = pair.axis(pair.want.ndim - 1)
    if _sums_to_one(pair, pair.want, (pair.want.ndim - 1,)):
        for id, (words, _) in _NORMS.items():
            yield Relation(
                f"factor-of-row:{id}",
                f"{pair.what} has the right proportions along {name}, but {words}.",
                lambda other, id=id: (  # type: ignore[misc]
                    _is_scaled_by_row(other) and _is_one(other, _NORMS[id][1](other.got))
                ),
            )
    yield Relation(
        "factor-of-row",
        f"{pair.what} has the right proportions along {name}, but each row is the right one "
        "times a number of its own.",
        _is_scaled_by_row,
    )


_NORMS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "squares": (
        "the squares of each row sum to one, not its numbers",
        lambda array: np.square(array).sum(-1),
    ),
    "largest": ("each row's largest is 1", lambda array: array.max(-1)),
}


def _is_one(pair: Pair, numbers: Any) -> bool:
    """Whether all numbers but zeros are 1."""
    return bool((pair.near(numbers, 1.0) | (numbers == 0)).all()) and numbers.any()


def _is_scaled_by_row(pair: Pair) -> bool:
    if pair.got.shape != pair.want.shape or pair.want.ndim < 2 or pair.is_bool:
        return False
    if not (np.isfinite(pair.got).all() and np.isfinite(pair.want).all()):
        return False
    at = abs(pair.want).argmax(-1, keepdims=True)
    top = np.take_along_axis(pair.want, at, -1)
    ratio = np.take_along_axis(pair.got, at, -1) / np.where(top == 0, 1, top)
    return bool((ratio != 0).any()) and pair.same(pair.got, pair.want * ratio)


def _row_power(pair: Pair) -> Iterator[Relation]:
    """Each row is a power of the right one, scaled to the same sum: a factor before a softmax."""
    if pair.want.ndim < 2 or pair.want.shape[-1] < _FEWEST or not is_telling(pair.want, False):
        return
    power = _power(pair)
    if power is None or abs(power - 1) < 1e-3 or abs(power) < 1e-3:
        return
    words = "{} is, row by row along {}, the right one to the power {}, scaled to the same sum: "
    words += "a softmax gives that where its input is multiplied by {}."
    name = pair.axis(pair.want.ndim - 1)
    for called in _names_of(power, pair.sizes):
        yield Relation(
            "power-of-size",
            words.format(pair.what, name, called, called),
            lambda other, called=called: _is_to_the_power(  # type: ignore[misc]
                other, _named_numbers(other.sizes).get(called)
            ),
        )
    yield Relation(
        "power",
        words.format(pair.what, name, f"{power:.4g}", f"{power:.4g}"),
        lambda other: _is_to_the_power(other, power),
    )
    yield Relation(
        "some-power",
        words.format(pair.what, name, "of one number", "that number")
        + f" It is {power:.4g} for this input.",
        lambda other: _is_to_the_power(other, _power(other)),
    )


def _power(pair: Pair) -> float | None:
    """The power, computed from the two numbers of a row that are furthest apart."""
    if not _are_shares(pair) or pair.want.ndim < 2:
        return None
    want = np.where(pair.want > 0, pair.want, np.nan).reshape(-1, pair.want.shape[-1])
    got = pair.got.reshape(want.shape)
    apart = np.nanmax(want, -1) / np.nanmin(want, -1)
    row = int(apart.argmax())
    high, low = int(np.nanargmax(want[row])), int(np.nanargmin(want[row]))
    if apart[row] < 1.01 or got[row][high] <= 0 or got[row][low] <= 0:
        return None
    return float(np.log(got[row][high] / got[row][low]) / np.log(apart[row]))


def _are_shares(pair: Pair) -> bool:
    """Whether both hold finite numbers from 0 on, and no row of the right one is all zeros."""
    if pair.got.shape != pair.want.shape or not np.isfinite(pair.got + pair.want).all():
        return False
    return bool((pair.got >= 0).all() and (pair.want >= 0).all() and pair.want.any(-1).all())


def _is_to_the_power(pair: Pair, power: float | None) -> bool:
    if power is None or not _are_shares(pair):
        return False
    raised = np.where(pair.want > 0, pair.want, 0.0)
    raised = np.where(raised > 0, np.power(np.where(raised > 0, raised, 1.0), power), 0.0)
    total = pair.want.sum(-1, keepdims=True)
    return pair.same(pair.got, raised / raised.sum(-1, keepdims=True) * total)


def _one_hot(pair: Pair) -> Iterator[Relation]:
    if pair.want.ndim < 2 or pair.want.shape[-1] < 2 or not is_telling(pair.want, False):
        return
    yield Relation(
        "one-hot",
        f"{pair.what} is 1 at the largest right number of each row along "
        f"{pair.axis(pair.want.ndim - 1)}, and 0 at all others.",
        lambda other: (
            other.got.shape == other.want.shape
            and other.same(other.got, np.eye(other.want.shape[-1])[other.want.argmax(-1)])
        ),
    )


_MAPS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "log": ("the logarithm of the right one", np.log),
    "exp": ("e to the power of the right one", np.exp),
    "square": ("the square of the right one", np.square),
    "root": ("the square root of the right one", np.sqrt),
    "abs": ("the right one without its signs", abs),
    "inverse": ("1 over the right one", np.reciprocal),
}


def _mapped(pair: Pair) -> Iterator[Relation]:
    if pair.is_bool or not is_telling(pair.want, False):
        return
    for id, (words, _) in _MAPS.items():
        yield Relation(
            f"map:{id}",
            f"{pair.what} is {words}, at every position.",
            lambda other, id=id: _is_mapped(other, _MAPS[id][1]),  # type: ignore[misc]
        )


def _is_mapped(pair: Pair, function: Callable[[Any], Any]) -> bool:
    with np.errstate(all="ignore"):
        return pair.same(pair.got, function(pair.want))


def _sums(pair: Pair) -> Iterator[Relation]:
    """The right numbers sum to one along some axes, the wrong ones along others."""
    if pair.is_bool or pair.got.shape != pair.want.shape or not is_telling(pair.got, False):
        return
    axes = range(pair.want.ndim)
    sets = [s for n in range(1, len(axes) + 1) for s in itertools.combinations(axes, n)]
    right = next((s for s in sets if _sums_to_one(pair, pair.want, s)), None)
    if right is None or _sums_to_one(pair, pair.got, right):
        return
    for chosen in sets:
        if math.prod(pair.got.shape[axis] for axis in chosen) < 2:
            continue
        yield Relation(
            f"sums:{''.join(map(str, chosen))}",
            f"{pair.what} sums to one over {listed([pair.axis(a) for a in chosen])}; "
            f"the right one sums to one over {listed([pair.axis(a) for a in right])}.",
            lambda other, chosen=chosen: (  # type: ignore[misc]
                max(chosen) < other.got.ndim and _sums_to_one(other, other.got, chosen)
            ),
        )


def _sums_to_one(pair: Pair, array: Any, axes: tuple[int, ...]) -> bool:
    """Whether every sum is one; a sum of zeros may be zero."""
    if not np.isfinite(array).all():
        return False
    sums = array.sum(axis=axes)
    return bool((pair.near(sums, 1.0) | (abs(array).sum(axis=axes) == 0)).all()) and sums.any()


def _shared_out(pair: Pair) -> Iterator[Relation]:
    """Each row sums to what it should, and has its numbers in the right order, but other ones."""
    if pair.want.ndim < 2 or pair.want.shape[-1] < _FEWEST or not is_telling(pair.got, False):
        return
    is_near = pair.got.shape == pair.want.shape and np.allclose(pair.got, pair.want, 0, _FAR)
    if is_near or not _sums_to_one(pair, pair.want, (pair.want.ndim - 1,)):
        return
    name = pair.axis(pair.want.ndim - 1)
    yield Relation(
        "shares",
        f"Along {name} each row of {_lower(pair.what)} has the right sum and the right order, but "
        "wrong numbers.",
        _is_shared_out,
    )


def _is_shared_out(pair: Pair) -> bool:
    if not _are_shares(pair) or not pair.near(pair.got.sum(-1), pair.want.sum(-1)).all():
        return False
    steps = np.diff(np.take_along_axis(pair.got, pair.want.argsort(-1), -1))
    return bool((steps >= -pair.room[1]).all() and (steps > pair.room[1]).any())


def _rounded(pair: Pair, fewest: int = 2) -> Iterator[Relation]:
    """Right to some digits, at least to the `fewest`."""
    error = _error(pair)
    if pair.is_bool or not is_telling(pair.want, False) or not error:
        return
    digits = min(math.floor(-math.log10(error / _COARSE)), _DIGITS)
    if digits < fewest:
        return
    yield Relation(
        "rounded",
        f"{pair.what} is right to {digits} or {digits + 1} digits only, as after a rounding.",
        lambda other: (e := _error(other)) is not None and e < _COARSE * 10.0**-digits,
    )


def _error(pair: Pair) -> float | None:
    """The largest error, relative to each number; a rounding leaves a 0 as it is."""
    if pair.got.shape != pair.want.shape or not np.isfinite(pair.want).all():
        return None
    if pair.got[pair.want == 0].any():
        return None
    scale = np.maximum(abs(pair.want), 1e-3 * max(abs(pair.want).max(), 1e-30))
    error = float((abs(pair.got - pair.want) / scale).max())
    return error if math.isfinite(error) else None


# Right in part


def _wherever(pair: Pair) -> Iterator[Relation]:
    """Wrong only where one certain number is expected, or only by holding one certain number."""
    if pair.got.shape != pair.want.shape:
        return
    wrong = ~pair.near(pair.got, pair.want)
    if not wrong.any() or wrong.all():
        return
    due, came = _only(pair.want[wrong]), _only(pair.got[wrong])
    words = _number(came, pair.is_bool) if came is not None else "other numbers"
    where = _number(due, pair.is_bool) if due is not None else ""
    if where == words:  # two numbers that differ by a rounding
        return
    if due is not None and (pair.is_bool or is_telling(pair.want, False)):
        yield Relation(
            f"wherever:{where}:{words if came is not None else ''}",
            f"Wherever {where} is expected, {_lower(pair.what)} holds {words}. "
            "All other numbers are right.",
            lambda other: _is_wrong_at(other, due, came, throughout=True),
        )
        yield Relation(
            f"where:{where}:{words if came is not None else ''}",
            f"{pair.what} holds {words} at some of the positions where {where} is expected. "
            "All other numbers are right.",
            lambda other: _is_wrong_at(other, due, came, throughout=False),
        )
    elif came is not None and wrong.sum() >= _FEWEST and not pair.is_bool:
        yield Relation(
            f"holds:{words}",
            f"{pair.what} holds {words} at some positions where other numbers are expected. "
            "All other numbers are right.",
            lambda other: _is_wrong_with(other, came),
        )


def _is_wrong_at(pair: Pair, due: float, came: float | None, *, throughout: bool) -> bool:
    if pair.got.shape != pair.want.shape:
        return False
    wrong, at = ~pair.near(pair.got, pair.want), _equals(pair.want, due)
    if (wrong & ~at).any() or (throughout and (at & ~wrong).any()):
        return False
    return came is None or bool(_equals(pair.got[wrong], came).all())


def _is_wrong_with(pair: Pair, came: float) -> bool:
    if pair.got.shape != pair.want.shape:
        return False
    wrong = ~pair.near(pair.got, pair.want)
    return bool(_equals(pair.got[wrong], came).all()) and not wrong.all()


def _equals(array: Any, number: float) -> Any:
    return np.isnan(array) if math.isnan(number) else np.isclose(array, number, 1e-6, 1e-9)


def _only(values: Any) -> float | None:
    """The number at every position, None if the numbers differ."""
    first = float(values.flat[0])
    return first if bool(_equals(values, first).all()) else None


def _slices(pair: Pair) -> Iterator[Relation]:
    """Right, or wrong, only at the first or the last position of one axis."""
    if pair.got.shape != pair.want.shape or not is_telling(pair.want, pair.is_bool):
        return
    for axis, size in enumerate(pair.want.shape):
        if size < _FEWEST or (pair.is_bool and axis == pair.want.ndim - 1):
            continue  # one of two slices, or a truth value, may be right by chance
        if _lie_at_one_place(pair, axis):
            continue
        for place, at in (("first", 0), ("last", -1)):
            for kind in ("right", "wrong"):
                right = pair.want.take(at, axis)
                if kind == "right" and not pair.is_bool and 2 * len(np.unique(right)) <= right.size:
                    continue  # zeros or a bias are right whatever the mistake
                rest = "all others have wrong numbers" if kind == "right" else "the rest is right"
                yield Relation(
                    f"only-{place}-{kind}:{axis}",
                    f"{pair.what} is {kind} only at the {place} position of {pair.axis(axis)}; "
                    f"{rest}.",
                    lambda other, axis=axis, at=at, kind=kind: _is_only(  # type: ignore[misc]
                        other, axis, at, kind
                    ),
                )


def _lie_at_one_place(pair: Pair, axis: int) -> bool:
    """Whether all wrong numbers are at one position of another axis: `axis` may not matter then."""
    wrong = ~pair.near(pair.got, pair.want)
    places = np.nonzero(wrong)
    others = (each for each, size in enumerate(wrong.shape) if each != axis and size > 1)
    return any(len(np.unique(places[other])) == 1 for other in others)


def _is_only(pair: Pair, axis: int, at: int, kind: str) -> bool:
    """Whether exactly the slice `at` is wrong, or is right while every other one is wrong."""
    if pair.got.shape != pair.want.shape or axis >= pair.want.ndim or pair.want.shape[axis] < 2:
        return False
    right = pair.near(pair.got, pair.want)
    others = tuple(other for other in range(right.ndim) if other != axis)
    slices = right.all(axis=others)
    expected = np.full(slices.shape, kind == "wrong")
    expected[at] = kind == "right"
    return bool((slices == expected).all())


def _stretches(pair: Pair) -> Iterator[Relation]:
    """Right in the first or the last part of one axis, of several positions, and nowhere else."""
    if pair.got.shape != pair.want.shape or not is_telling(pair.want, pair.is_bool):
        return
    for axis, size in enumerate(pair.want.shape):
        if (pair.is_bool and axis == pair.want.ndim - 1) or _lie_at_one_place(pair, axis):
            continue
        for place in ("first", "last"):
            count = _right_stretch(pair, axis, place)
            if not 1 < count < size - 1:
                continue
            kept = slice(count) if place == "first" else slice(size - count, size)
            right = pair.want.take(range(size)[kept], axis)
            if not pair.is_bool and 2 * len(np.unique(right)) <= right.size:
                continue
            share = Fraction(count, size)
            if share.denominator <= _PARTS:
                yield Relation(
                    f"{place}-part-right:{axis}",
                    f"{pair.what} is right only in the {place} {share} of {pair.axis(axis)}; "
                    "all other positions have wrong numbers.",
                    lambda other, axis=axis, place=place, share=share: (  # type: ignore[misc]
                        axis < other.want.ndim
                        and _right_stretch(other, axis, place) == share * other.want.shape[axis]
                    ),
                )
            yield Relation(
                f"{place}-positions-right:{axis}",
                f"{pair.what} is right only at the {place} {count} positions of "
                f"{pair.axis(axis)}; all others have wrong numbers.",
                lambda other, axis=axis, place=place, count=count: (  # type: ignore[misc]
                    axis < other.want.ndim and _right_stretch(other, axis, place) == count
                ),
            )


def _right_stretch(pair: Pair, axis: int, place: str) -> int:
    """How many positions at one end of an axis are right, if all others are wrong, else 0."""
    if pair.got.shape != pair.want.shape:
        return 0
    right = pair.near(pair.got, pair.want)
    slices = right.all(axis=tuple(other for other in range(right.ndim) if other != axis))
    count = int(slices.sum())
    ordered = slices if place == "first" else slices[::-1]
    return count if 0 < count < len(slices) and ordered[:count].all() else 0


def _places(pair: Pair) -> Iterator[Relation]:
    """The right numbers in other places: within each row, or within the whole array."""
    if pair.got.size != pair.want.size or pair.is_bool:
        return
    ordered = np.sort(pair.want, axis=None)
    different = int((~pair.near(ordered[1:], ordered[:-1])).sum()) + 1
    if different < max(2 * _FEWEST, pair.want.size // 2):
        return
    yield Relation(
        "places",
        f"{pair.what} holds exactly the right numbers, each one once, but in other places.",
        lambda other: other.same(np.sort(other.got, axis=None), np.sort(other.want, axis=None)),
    )


def _number(value: float, is_bool: bool = False) -> str:
    if is_bool:
        return str(bool(value))
    return "NaN" if math.isnan(value) else f"{value + 0.0:.6g}"  # no -0


def _lower(text: str) -> str:
    return text[0].lower() + text[1:] if text.startswith(("Your ", "The ")) else text


_ALL: tuple[Callable[[Pair], Iterator[Relation]], ...] = (
    *(_constant, _argument, _axes, _shape, _longer, _reduced, _turned_round, _factor, _offset),
    _mapped,
    # A check can be stricter than a replay, so what is almost right everywhere seems right in part.
    partial(_rounded, fewest=4),
    _truth_repeated,
    *(_wherever, _slices, _along_an_axis, _one_hot, _row_power, _sums, _row_factor, _repeated),
    *(_row_offset, _shared_out, _stretches, _symmetric, _rounded, _places),
)
