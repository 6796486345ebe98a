"""Relations of the numbers: factors, offsets, powers, sums, roundings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from grader.diagnosis.comparison.relations.pair import FEWEST, Pair, Relation, is_telling, lower
from grader.types.text import listed

_COARSE = 0.4  # of a rounded result: the largest error, in units of its last digit
_DIGITS = 15  # at most
_SEVERAL = 6  # numbers that a rounding does not move all the same way
_FAR = 1e-2  # between two shares of one that no rounding explains
_MAPS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "log": ("the logarithm of the right one", np.log),
    "exp": ("e to the power of the right one", np.exp),
    "square": ("the square of the right one", np.square),
    "root": ("the square root of the right one", np.sqrt),
    "abs": ("the right one without its signs", abs),
    "inverse": ("1 over the right one", np.reciprocal),
    "whole": ("the right one, rounded to a whole number", np.round),
    "floor": ("the right one, rounded down to a whole number", np.floor),
    "ceil": ("the right one, rounded up to a whole number", np.ceil),
    "softmax": (
        "the softmax of the right one along the last axis",
        lambda array: _exp_shares(np.atleast_1d(array)),
    ),
}


def turned_round(pair: Pair) -> Iterator[Relation]:
    """True for False, or -inf for a finite number, and the other way round or NaN."""
    if pair.is_bool and is_telling(pair.want, True):
        yield Relation(
            "turned-round",
            f"{pair.what} is True exactly where False is expected, and False where True is.",
            lambda other: other.is_bool and other.same(other.got, 1 - other.want),
        )
    blocked = np.isneginf(pair.want)
    if blocked.any() and not blocked.all():
        for came, is_so in (("a finite number", np.isfinite), ("NaN", np.isnan)):
            yield Relation(
                "blocked-turned-round",
                f"{pair.what} holds -inf exactly where a finite number is expected, and {came} "
                "where -inf is.",
                lambda other, is_so=is_so: bool(  # type: ignore[misc]
                    np.where(
                        np.isneginf(other.want), is_so(other.got), np.isneginf(other.got)
                    ).all()
                ),
            )


def factor(pair: Pair) -> Iterator[Relation]:
    """A constant factor, or one that is a size: inputs of one size do not tell which."""
    if not is_telling(abs(pair.want[np.isfinite(pair.want)]), False):
        return
    factor = _ratio(pair)
    if factor is None or abs(factor - 1) < 1e-9:
        return
    names = _names_of(factor, pair.sizes)
    yield from _round_first(
        factor,
        Relation(
            "factor",
            f"{pair.what} is the right one times {factor:.6g}, at every position"
            f"{_as_large(names)}.",
            lambda other: _is_times(other, factor),
        ),
        [
            Relation(
                "factor-of-size",
                f"{pair.what} is the right one times {name}, at every position.",
                lambda other, name=name: _is_times(  # type: ignore[misc]
                    other, _named_numbers(other.sizes, least=1).get(name)
                ),
            )
            for name in names
        ],
    )
    yield Relation(
        "some-factor",
        f"{pair.what} is the right one times a number that is the same at every position but not "
        f"for every input ({factor:.4g} for one of them).",
        lambda other: _is_times(other, _ratio(other)),
    )


def _round_first(
    number: float, plain: Relation, of_sizes: Sequence[Relation]
) -> Iterator[Relation]:
    """The relations by a number and by a size: a round number may be as large as one by chance."""
    yield from (plain, *of_sizes) if _is_round(number) else (*of_sizes, plain)


def _is_round(number: float) -> bool:
    return math.isclose(number, float(f"{number:.1g}"), rel_tol=1e-4)


def _as_large(names: Sequence[str]) -> str:
    """Which size is as large as a factor, in brackets, if just one is."""
    return f" (here {names[0]} is as large)" if len(names) == 1 else ""


def _is_times(pair: Pair, factor: float | None) -> bool:
    is_number = factor is not None and not math.isnan(factor)
    return is_number and pair.same(pair.got, pair.want * factor)


def _ratio(pair: Pair) -> float | None:
    """The factor at the largest finite number."""
    finite = np.isfinite(pair.want) & (pair.want != 0)
    if not finite.any():
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
    numbers = _of_one_size if _is_round(factor) else _named_numbers
    named = numbers({name: size for size, name in distinct.items()})
    return [name for name, value in named.items() if math.isclose(factor, value, rel_tol=1e-4)]


def offset(pair: Pair) -> Iterator[Relation]:
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
    if rows >= FEWEST and pair.want.shape[-1] >= 2 and not is_whole:
        name = pair.axis(pair.want.ndim - 1)
        yield Relation(
            "offset-of-feature",
            f"{pair.what} differs from the right one by a number that depends on the position "
            f"along {name} alone, as if a bias had been added or left out.",
            _is_shifted_by_feature,
        )


def _difference(pair: Pair) -> Any:
    is_finite = np.isfinite(pair.want).all() and np.isfinite(pair.got).all()
    return pair.got - pair.want if is_finite else None


def _is_shifted_by_feature(pair: Pair) -> bool:
    off = _difference(pair)
    if off is None or off.ndim < 2:
        return False
    first = off.reshape(-1, off.shape[-1])[0]
    return pair.same(pair.got, pair.want + first)


def row_offset(pair: Pair) -> Iterator[Relation]:
    """A difference that is the same throughout each row along the last axis."""
    is_whole = pair.room == (0.0, 0.0)  # as are the neighbours of numbers that are counted
    if is_whole or pair.want.ndim < 2 or pair.want.shape[-1] < FEWEST:
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


def row_factor(pair: Pair) -> Iterator[Relation]:
    """Each row along the last axis is the right one times a factor of its own."""
    if pair.want.ndim < 2 or pair.want.shape[-1] < FEWEST or not is_telling(pair.want, False):
        return
    name = pair.axis(pair.want.ndim - 1)
    yield Relation(
        "factor-of-row",
        f"{pair.what} has the right proportions along {name}, but each row is the right one "
        "times a number of its own.",
        _is_scaled_by_row,
    )


def _is_scaled_by_row(pair: Pair) -> bool:
    if pair.want.ndim < 2 or pair.is_bool or _difference(pair) is None:
        return False
    at = abs(pair.want).argmax(-1, keepdims=True)
    top = np.take_along_axis(pair.want, at, -1)
    ratio = np.take_along_axis(pair.got, at, -1) / np.where(top == 0, 1, top)
    return bool((ratio != 0).any()) and pair.same(pair.got, pair.want * ratio)


def row_power(pair: Pair) -> Iterator[Relation]:
    """Each row is a power of the right one, scaled to the same sum: a factor before a softmax."""
    if pair.want.ndim < 2 or pair.want.shape[-1] < FEWEST or not is_telling(pair.want, False):
        return
    power = _power(pair)
    if power is None or abs(power - 1) < 1e-3 or abs(power) < 1e-3:
        return
    words = "{} is, row by row along {}, the right one to the power {}, scaled to the same sum: "
    words += "a softmax gives that where its input is multiplied by {}."
    name = pair.axis(pair.want.ndim - 1)
    names = _names_of(power, pair.sizes)
    yield from _round_first(
        power,
        Relation(
            "power",
            words.format(pair.what, name, f"{power:.4g}", f"{power:.4g}{_as_large(names)}"),
            lambda other: _is_to_the_power(other, power),
        ),
        [
            Relation(
                "power-of-size",
                words.format(pair.what, name, called, called),
                lambda other, called=called: _is_to_the_power(  # type: ignore[misc]
                    other, _named_numbers(other.sizes).get(called)
                ),
            )
            for called in names
        ],
    )
    yield Relation(
        "some-power",
        words.format(pair.what, name, "of one number", "that number")
        + f" It depends on the input, and is {power:.4g} for one of them.",
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
    if not np.isfinite(pair.got + pair.want).all():
        return False
    return bool((pair.got >= 0).all() and (pair.want >= 0).all() and pair.want.any(-1).all())


def _is_to_the_power(pair: Pair, power: float | None) -> bool:
    if power is None or not _are_shares(pair):
        return False
    raised = np.where(pair.want > 0, pair.want, 0.0)
    raised = np.where(raised > 0, np.power(np.where(raised > 0, raised, 1.0), power), 0.0)
    total = pair.want.sum(-1, keepdims=True)
    return pair.same(pair.got, raised / raised.sum(-1, keepdims=True) * total)


def one_hot(pair: Pair) -> Iterator[Relation]:
    """1 at the largest right number of each row, and 0 elsewhere."""
    if pair.want.ndim < 2 or pair.want.shape[-1] < 2 or not is_telling(pair.want, False):
        return
    yield Relation(
        "one-hot",
        f"{pair.what} is 1 at the largest right number of each row along "
        f"{pair.axis(pair.want.ndim - 1)}, and 0 at all others.",
        lambda other: other.same(other.got, np.eye(other.want.shape[-1])[other.want.argmax(-1)]),
    )


def mapped(pair: Pair) -> Iterator[Relation]:
    """A function of the right numbers, such as their logarithm."""
    if pair.is_bool or not is_telling(pair.want, False):
        return
    for id, (words, _) in _MAPS.items():
        yield Relation(
            f"map:{id}",
            f"{pair.what} is {words}, at every position.",
            lambda other, id=id: _is_mapped(other, _MAPS[id][1]),  # type: ignore[misc]
        )


def _exp_shares(array: Any) -> Any:
    powers = np.exp(array - array.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _is_mapped(pair: Pair, function: Callable[[Any], Any]) -> bool:
    with np.errstate(all="ignore"):
        return pair.same(pair.got, function(pair.want))


def sums(pair: Pair) -> Iterator[Relation]:
    """The right numbers sum to one along some axes, the wrong ones along others."""
    if pair.is_bool or not is_telling(pair.got, False):
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


def shared_out(pair: Pair) -> Iterator[Relation]:
    """Each row sums to what it should, and has its numbers in the right order, but other ones."""
    if pair.want.ndim < 2 or pair.want.shape[-1] < FEWEST or not is_telling(pair.got, False):
        return
    is_near = np.allclose(pair.got, pair.want, 0, _FAR)
    if is_near or not _sums_to_one(pair, pair.want, (pair.want.ndim - 1,)):
        return
    name = pair.axis(pair.want.ndim - 1)
    yield Relation(
        "shares",
        f"Along {name} each row of {lower(pair.what)} has the right sum and the right order, but "
        "wrong numbers.",
        _is_shared_out,
    )


def _is_shared_out(pair: Pair) -> bool:
    if not _are_shares(pair) or not pair.near(pair.got.sum(-1), pair.want.sum(-1)).all():
        return False
    steps = np.diff(np.take_along_axis(pair.got, pair.want.argsort(-1), -1))
    return bool((steps >= -pair.room[1]).all() and (steps > pair.room[1]).any())


def rounded(pair: Pair, fewest: int = 2) -> Iterator[Relation]:
    """Right to some digits, at least to the `fewest`."""
    error = _error(pair)
    if pair.is_bool or not is_telling(pair.want, False) or not error:
        return
    digits = min(math.floor(-math.log10(error / _COARSE)), _DIGITS)
    if digits < fewest:
        return
    side = _side(pair)
    words = f", as after a rounding{' to float32' if digits == 6 else ''}"
    if side:
        words = f", and each wrong number is too {'close to' if side < 0 else 'far from'} 0"
    yield Relation(
        "one-sided" if side else "rounded",
        f"{pair.what} is right to {digits} or {digits + 1} digits only{words}.",
        lambda other: (
            (e := _error(other)) is not None
            and e < _COARSE * 10.0**-digits
            and _side(other, fewest=1 if side else _SEVERAL) == side
        ),
    )


def _side(pair: Pair, fewest: int = _SEVERAL) -> int:
    """-1 if all wrong numbers, at least the `fewest`, are too close to 0, 1 if too far, else 0."""
    signs = np.sign(abs(pair.got) - abs(pair.want))
    signs = signs[signs != 0]
    return int(signs[0]) if len(signs) >= fewest and (signs == signs[0]).all() else 0


def _error(pair: Pair) -> float | None:
    """The largest error, relative to each number; a rounding leaves a 0 as it is."""
    if not np.isfinite(pair.want).all() or pair.got[pair.want == 0].any():
        return None
    scale = np.maximum(abs(pair.want), 1e-3 * max(abs(pair.want).max(), 1e-30))
    error = float((abs(pair.got - pair.want) / scale).max())
    return error if math.isfinite(error) else None
