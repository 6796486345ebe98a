"""Relations of arrays that are right in part: where they are wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from grader.diagnosis.comparison.relations.pair import (
    FEWEST,
    Pair,
    Relation,
    is_telling,
    lower,
    number,
)

_PARTS = 6  # of an axis, in words such as 2/3
_MOST_RIGHT = 0.75  # of the numbers at a position that is called wrong


def wherever(pair: Pair) -> Iterator[Relation]:
    """Wrong only where one certain number is expected, or only by holding one certain number."""
    wrong = ~pair.near(pair.got, pair.want)
    if not wrong.any() or wrong.all():
        return
    due, came = _only(pair.want[wrong]), _only(pair.got[wrong])
    words = number(came, pair.is_bool) if came is not None else ""
    where = number(due, pair.is_bool) if due is not None else ""
    if where == words:  # two numbers that differ by a rounding
        return
    if due is not None and (pair.is_bool or is_telling(pair.want, False)):
        yield from _where_due(pair, due, where, came, words)
        if came is not None:  # another pair may hold others, as where a dtype rounds them
            yield from _where_due(pair, due, where, None, "")
    elif came is not None and wrong.sum() >= FEWEST and not pair.is_bool:
        yield Relation(
            f"holds:{words}",
            f"{pair.what} holds {words} at some positions where other numbers are expected. "
            "All other numbers are right.",
            lambda other: _is_wrong_with(other, came),
        )


def _where_due(
    pair: Pair, due: float, where: str, came: float | None, words: str
) -> Iterator[Relation]:
    """Wrong where one number is due, by holding another one, or any if it is None."""
    holds = words or "other numbers"
    yield Relation(
        f"wherever:{where}:{words}",
        f"Wherever {where} is expected, {lower(pair.what)} holds {holds}. "
        "All other numbers are right.",
        lambda other: _is_wrong_at(other, due, came, throughout=True),
    )
    yield Relation(
        f"where:{where}:{words}",
        f"{pair.what} holds {holds} at some of the positions where {where} is expected. "
        "All other numbers are right.",
        lambda other: _is_wrong_at(other, due, came, throughout=False),
    )


def _is_wrong_at(pair: Pair, due: float, came: float | None, *, throughout: bool) -> bool:
    wrong, at = ~pair.near(pair.got, pair.want), _equals(pair.want, due)
    if (wrong & ~at).any() or (throughout and (at & ~wrong).any()):
        return False
    return came is None or bool(_equals(pair.got[wrong], came).all())


def _is_wrong_with(pair: Pair, came: float) -> bool:
    wrong = ~pair.near(pair.got, pair.want)
    return bool(_equals(pair.got[wrong], came).all()) and not wrong.all()


def blocked_elsewhere(pair: Pair) -> Iterator[Relation]:
    """-inf at other positions, and the right numbers wherever neither array has it."""
    if _is_blocked_elsewhere(pair) and is_telling(pair.want[_is_seen(pair)], False):
        yield Relation(
            "blocked-elsewhere",
            f"{pair.what} holds -inf at other positions than the right one. "
            "All other numbers are right.",
            _is_blocked_elsewhere,
        )


def _is_blocked_elsewhere(pair: Pair) -> bool:
    seen = _is_seen(pair)
    is_moved = (np.isneginf(pair.got) != np.isneginf(pair.want)).any()
    return bool(is_moved and pair.near(pair.got[seen], pair.want[seen]).all())


def _is_seen(pair: Pair) -> Any:
    """The positions that neither array blocks."""
    return ~(np.isneginf(pair.got) | np.isneginf(pair.want))


def _equals(array: Any, number: float) -> Any:
    return np.isnan(array) if math.isnan(number) else np.isclose(array, number, 1e-6, 1e-9)


def _only(values: Any) -> float | None:
    """The number at every position, None if the numbers differ."""
    first = float(values.flat[0])
    return first if bool(_equals(values, first).all()) else None


def slices(pair: Pair) -> Iterator[Relation]:
    """Right, or wrong, only at the first or the last position of one axis."""
    if not is_telling(pair.want, pair.is_bool):
        return
    for axis, size in enumerate(pair.want.shape):
        if size < FEWEST or (pair.is_bool and axis == pair.want.ndim - 1):
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
    if axis >= pair.want.ndim or pair.want.shape[axis] < 2:
        return False
    right = pair.near(pair.got, pair.want)
    others = tuple(other for other in range(right.ndim) if other != axis)
    expected = np.full(pair.want.shape[axis], kind == "wrong")
    expected[at] = kind == "right"
    if not (right.all(axis=others) == expected).all():
        return False
    # A few wrong numbers may be missing in one place by chance.
    return kind == "wrong" or bool((right.mean(axis=others)[~expected] <= _MOST_RIGHT).all())


def stretches(pair: Pair) -> Iterator[Relation]:
    """Right in the first or the last part of one axis, of several positions, and nowhere else."""
    if not is_telling(pair.want, pair.is_bool):
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
    right = pair.near(pair.got, pair.want)
    slices = right.all(axis=tuple(other for other in range(right.ndim) if other != axis))
    count = int(slices.sum())
    ordered = slices if place == "first" else slices[::-1]
    return count if 0 < count < len(slices) and ordered[:count].all() else 0


def places(pair: Pair) -> Iterator[Relation]:
    """The right numbers in other places: within each row, or within the whole array."""
    if pair.got.size != pair.want.size or pair.is_bool:
        return
    ordered = np.sort(pair.want, axis=None)
    different = int((~pair.near(ordered[1:], ordered[:-1])).sum()) + 1
    if different < max(2 * FEWEST, pair.want.size // 2):
        return
    yield Relation(
        "places",
        f"{pair.what} holds exactly the right numbers, each one once, but in other places.",
        lambda other: other.same(np.sort(other.got, axis=None), np.sort(other.want, axis=None)),
    )
