"""A symptom states what holds for every number, and nothing that could not have failed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grader.diagnosis.comparison.relations.finding import relation_of, relation_of_numbers
from grader.diagnosis.comparison.relations.pair import Pair

Array = Any
ROOM = (1e-7, 1e-9)


def drawn(*shape: int, seed: int = 3) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def shares(*shape: int, seed: int = 3) -> Array:
    powers = np.exp(drawn(*shape, seed=seed))
    return powers / powers.sum(-1, keepdims=True)


def pair(got: Array, want: Array, **more: Any) -> Pair:
    is_bool = got.dtype == bool and want.dtype == bool
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return Pair(got, want, ROOM, is_bool=is_bool, **more)


def found(*pairs: Pair) -> str | None:
    relation = relation_of(pairs)
    return relation.id if relation else None


def sigmoids(*shape: int) -> Array:
    halves = 1 / (1 + np.exp(-drawn(*shape)))
    return halves / halves.sum(-1, keepdims=True)


X = drawn(2, 3, 4)
W = shares(2, 3, 4)
BLOCKED = np.where(drawn(2, 3, 4, seed=9) > 0, X, -np.inf)
MASK = drawn(2, 3, 4) > 0
LOWER = np.tri(5, dtype=bool)


def with_part(array: Array, index: Any, number: Any) -> Array:
    changed = array.copy()
    changed[index] = number
    return changed


ROWS = np.arange(6.0).reshape(2, 3)

RELATED: dict[str, tuple[Array, Array, str]] = {
    "constant": (np.zeros((2, 3, 4)), X, "constant"),
    "two axes": (X.transpose(0, 2, 1), X, "axes:021"),
    "three axes": (X.transpose(1, 2, 0), X, "axes:120"),
    "a transposed table of truths": (LOWER.T, LOWER, "axes:10"),
    "an axis of size 1": (X[:, None], X, "axis-of-one"),
    "axes merged": (X.reshape(6, 4), X, "shape"),
    "one position too many": (drawn(3, 5), drawn(3, 5)[:, :4], "too-many-last:1"),
    "the first position missing": (X[:, 1:], X, "too-few-first:1"),
    "a mask turned round": (~MASK, MASK, "turned-round"),
    "few truth values, all alike": (np.ones((2, 2), bool), np.tri(2, dtype=bool), "constant"),
    "blocked elsewhere": (
        np.where(drawn(2, 3, 4, seed=8) > 0, X, -np.inf),
        np.where(drawn(2, 3, 4, seed=9) > 0, X, -np.inf),
        "blocked-elsewhere",
    ),
    "blocked turned round": (np.where(np.isinf(BLOCKED), X, -np.inf), BLOCKED, "blocked-turned-"),
    "a factor": (X * 1.7, X, "factor"),
    "a factor that leaves less than the tolerance": (X * 1e-12, X, "factor"),
    "a sign": (-X, X, "factor"),
    "an offset": (X + 1, X, "offset"),
    "an offset for each feature": (X + np.array([1, 2, 0, 5]), X, "offset-of-feature"),
    "the logarithm": (np.log(W), W, "map:log"),
    "the softmax": (shares(2, 3, 4), X, "map:softmax"),
    "0 for -inf": (np.where(np.isinf(BLOCKED), 0, BLOCKED), BLOCKED, "wherever:-inf:0"),
    "NaN at one 0": (
        with_part(with_part(X, (slice(None), 0), 0), (1, 0), np.nan),
        with_part(X, (slice(None), 0), 0),
        "where:0:NaN",
    ),
    "0 where other numbers are due": (with_part(X, (0, 0, slice(3)), 0), X, "holds:0"),
    "only the first right": (
        with_part(X, (slice(None), slice(1, None)), drawn(2, 2, 4, seed=8)),
        X,
        "only-first-right:1",
    ),
    "only the last wrong": (
        with_part(X, (slice(None), 2), drawn(2, 4, seed=8)),
        X,
        "only-last-wrong:1",
    ),
    "reversed": (X[:, :, ::-1], X, "reversed:2"),
    "shuffled": (X[:, [1, 2, 0]], X, "shuffled:1"),
    "two axes in the other order": (X.swapaxes(0, 1).reshape(X.shape), X, "places"),
    "one-hot": (np.eye(4)[W.argmax(-1)], W, "one-hot"),
    "a factor before a softmax": (W**3 / (W**3).sum(-1, keepdims=True), W, "power"),
    "sums along another axis": (
        np.exp(X) / np.exp(X).sum(1, keepdims=True),
        np.exp(X) / np.exp(X).sum(2, keepdims=True),
        "sums:1",
    ),
    "a factor for each row": (X * drawn(2, 3, 1, seed=5), X, "factor-of-row"),
    "rows whose largest is one": (W / W.max(-1, keepdims=True), W, "factor-of-row"),
    "an offset for each row": (X + drawn(2, 3, 1, seed=5), X, "offset-of-row"),
    "summed over an axis": (X.sum(1), X, "reduced:sum:1"),
    "averaged over an axis": (X.mean(0), X, "reduced:mean:0"),
    "one position of an axis": (X[:, :, -1], X, "reduced:last:2"),
    "shared out in another way": (sigmoids(2, 3, 4), W, "shares"),
    "the first half right": (
        with_part(drawn(3, 8), (slice(None), slice(4, None)), drawn(3, 4, seed=8)),
        drawn(3, 8),
        "first-part-right:1",
    ),
    "the last two right": (
        with_part(drawn(9, 3), slice(7), drawn(7, 3, seed=8)),
        drawn(9, 3),
        "last-positions-right:0",
    ),
    "the same for every batch": (np.repeat(drawn(1, 3, 4, seed=6), 2, 0), X, "same-along:0"),
    "the longest for every row": (LOWER[[3] * 4], LOWER[:4], "same-along:0"),
    "rounded": (X.astype(np.float16), X, "rounded"),
    "too close to 0": (X * (1 - np.linspace(1e-3, 2e-3, X.size).reshape(X.shape)), X, "one-sided"),
    "in other places": (X.ravel()[::-1][np.r_[3:24, :3]].reshape(2, 3, 4), X, "places"),
}


@pytest.mark.parametrize("got, want, id", RELATED.values(), ids=RELATED)
def test_a_relation_is_found(got: Array, want: Array, id: str) -> None:
    assert (found(pair(got, want)) or "").startswith(id)


@pytest.mark.parametrize(
    "dtype, told",
    [
        (np.float16, "right to 2 or 3 digits only"),
        (np.float32, "right to 6 or 7 digits only, as after a rounding to float32."),
    ],
)
def test_a_rounding_is_told_with_the_digits_that_are_right(dtype: type, told: str) -> None:
    precise = Pair(X.astype(dtype).astype(float), X, (0.0, 0.0))
    relation = relation_of([precise])
    assert relation is not None and told in relation.text


def test_a_tiny_number_in_place_of_zero_is_no_rounding() -> None:
    want = with_part(X, (0, 0, 0), 0.0)
    got = with_part(want.astype(np.float32).astype(float), (0, 0, 0), 1e-20)
    assert relation_of([Pair(got, want, (0.0, 0.0))]) is None


UNRELATED: dict[str, tuple[Array, Array]] = {
    "other numbers": (drawn(2, 3, 4, seed=7), X),
    "the right numbers": (X, X),
    "other numbers, all less than the tolerance": (drawn(2, 3, 4, seed=7) * 1e-12, X),
    "another shape": (drawn(5, 2), X),
    "numbers that are all alike": (np.full((2, 3), 2.0), np.ones((2, 3))),
    "one number in place of many": (np.ones((1, 1)), X[0]),
    "one number": (np.array([[2.0]]), np.array([[1.0]])),
    "two numbers, each other's opposite": (np.array([1.0, -1.0]), np.array([-1.0, 1.0])),
    "a table that is its own transpose": (np.eye(3)[:, :2], np.eye(3)[:2]),
    "one of two slices": (with_part(X, 1, drawn(3, 4, seed=8)), X),
    "one row of the last slice": (with_part(X, (1, 2), drawn(4, seed=8)), X),
    "a few numbers, none in the last slice": (
        with_part(with_part(X, (0, 0, 1), 9.5), (1, 1, 2), 7.5),
        X,
    ),
    "all but the first number of one row": (with_part(ROWS, (0, slice(1, None)), [7, 9]), ROWS),
    "no numbers": (np.zeros((0, 3)), np.zeros((0, 3))),
    "NaN throughout": (np.full((2, 3), np.nan), np.zeros((2, 3))),
}


@pytest.mark.parametrize("got, want", UNRELATED.values(), ids=UNRELATED)
def test_what_proves_nothing_is_not_told(got: Array, want: Array) -> None:
    assert found(pair(got, want)) is None


CHANGES: dict[str, Callable[[Array], Array]] = {
    "factor": lambda a: a * 1.7,
    "axes": lambda a: a.transpose(0, 2, 1),
    "part": lambda a: with_part(a, slice(1, None), 9.5),
    "offset": lambda a: a + 2,
    "reversed": lambda a: a[:, ::-1],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_one_wrong_number_takes_the_relation_away(change: Callable[[Array], Array]) -> None:
    got = change(X)
    told = found(pair(got, X))
    assert told is not None
    assert found(pair(with_part(got.copy(), (1, 1, 1), 77.0), X)) != told


def test_a_relation_must_hold_in_every_case() -> None:
    other = drawn(3, 2, 5)
    assert found(pair(X * 2, X), pair(other * 2, other)) == "factor"
    relation = relation_of([pair(X * 2, X), pair(other * 3, other)])
    assert relation is not None and relation.id == "some-factor"
    # The failure may be shown with any of the inputs.
    assert "not for every input (2 for one of them)" in relation.text
    assert found(pair(X * 2, X), pair(other + 3, other)) is None
    filled = (pair(np.where(np.isinf(BLOCKED), low, BLOCKED), BLOCKED) for low in (-1e9, -9.98e8))
    assert found(*filled) == "wherever:-inf:"


def test_what_is_said_of_the_right_one_is_true_in_every_case() -> None:
    one, other, right = (drawn(2, 1, 4, seed=seed).repeat(3, 1) for seed in (6, 7, 8))
    assert found(pair(one, X), pair(other, X * 2)) == "same-along:1"
    assert found(pair(one, X), pair(other, right)) is None


def test_what_stands_in_place_of_minus_infinity_is_told() -> None:
    for came, told in ((X, "a finite number where -inf is"), (np.nan, "NaN where -inf is")):
        relation = relation_of([pair(np.where(np.isinf(BLOCKED), came, -np.inf), BLOCKED)])
        assert relation is not None and told in relation.text


def test_a_factor_has_the_name_of_the_size_that_it_is_in_every_case() -> None:
    def scaled(want: Array, d: int, h: int) -> Pair:
        return pair(want * d**0.5, want, sizes={"D": d, "H": h})

    relation = relation_of([scaled(X, 8, 4), scaled(drawn(3, 2, 5), 12, 2)])
    assert relation.text == "Your result is the right one times sqrt(D), at every position."


def test_a_round_factor_is_not_named_after_the_ratio_of_two_sizes() -> None:
    for tokens, name in ((3, "0.5"), (5, "sqrt(T / D)")):
        factor, sizes = (tokens / 12) ** 0.5, {"T": tokens, "D": 12}
        relation = relation_of([pair(X * factor, X, sizes=sizes)])
        assert relation.text == f"Your result is the right one times {name}, at every position."


def test_a_round_factor_is_said_to_be_as_large_as_a_size() -> None:
    relation = relation_of([pair(X * 4, X, sizes={"H": 4, "D": 12})])
    assert "times 4, at every position (here H is as large)." in relation.text


def test_axes_are_told_by_their_names() -> None:
    relation = relation_of([pair(X.transpose(0, 2, 1), X, axes=("B", "T", "D"))])
    assert "T and D swapped" in relation.text


@pytest.mark.parametrize(
    ("got", "told"),
    [
        ([1.0, 0.25, -2.0], "the right one times 0.5"),
        ([3, 1.5, -3], "the right one plus 1"),
        ([7, 7.0, 7], "7 in"),
        ([0.5, 2.0, -0.25], "1 over the right one"),
        ([2.0, 0, -4.0], "the right one, rounded to a whole number"),
        ([2.0, 0.5, 4.0], "the right one without its signs"),
        ([1.0, 0.25, 2.0], None),
    ],
)
def test_plain_numbers_are_related_over_all_calls(got: list[float], told: str | None) -> None:
    found = relation_of_numbers(list(zip(got, [2.0, 0.5, -4.0], strict=True)))
    assert (found and found.text) == (
        told and f"Your result is {told}{'' if told.endswith(' in') else ', in'} each failing call."
    )


def test_two_right_numbers_prove_no_relation() -> None:
    assert relation_of_numbers([(1.0, 2.0), (2.0, 4.0), (1.0, 2.0)]) is None
