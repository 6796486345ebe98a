"""A right value is found among the learner's tensors in every form that right code gives it."""

from typing import Any

import numpy
import pytest

from grader.diagnosis.comparison.values.matching import Match, Tolerance, is_telling, match

TOLERANCE = Tolerance(1e-3, 1e-5)
HEADS = numpy.random.default_rng(3).normal(size=(2, 3, 4, 5))  # (B, H, T, d_k)
OTHER = numpy.random.default_rng(4).normal(size=(2, 3, 4, 5))

FORMS: dict[str, tuple[list[Any], Match | None]] = {
    "as it is": ([OTHER, HEADS], Match(1)),
    "the last of several": ([HEADS, OTHER, HEADS], Match(2)),
    "batch and heads as one axis": ([HEADS.reshape(6, 4, 5)], Match(0)),
    "an axis of size 1 more": ([HEADS[:, :, None]], Match(0)),
    "one head at a time": ([OTHER, *HEADS.transpose(1, 0, 2, 3)], Match(3)),
    "one head of one sequence at a time": (list(HEADS.reshape(6, 4, 5)), Match(5)),
    "heads that are not made one after the other": (
        [*HEADS.transpose(1, 0, 2, 3)[1:], OTHER, HEADS[:, 0]],
        None,
    ),
    "heads of which one is made again": (
        [*HEADS.transpose(1, 0, 2, 3), HEADS[:, 0]],
        Match(2),
    ),
    "two axes exchanged": ([HEADS.transpose(0, 2, 1, 3)], Match(0, (0, 2, 1, 3))),
    "an axis cut in two": ([HEADS.reshape(2, 3, 2, 2, 5)], Match(0)),
    "an axis cut in two behind another": (
        [HEADS.transpose(0, 1, 3, 2).reshape(2, 3, 5, 2, 2)],
        Match(0, (0, 1, 3, 2)),
    ),
    "an axis cut across another": ([HEADS.reshape(2, 3, 2, 10)], None),
    "twice as large": ([2 * HEADS], Match(0, factor=2.0)),
    "twice as large, with batch and heads as one axis": (
        [2 * HEADS.reshape(6, 4, 5)],
        Match(0, factor=2.0),
    ),
    "hidden in part": ([numpy.where(HEADS > 1, -numpy.inf, HEADS)], Match(0)),
    "NaN in part": ([numpy.where(HEADS > 1, numpy.nan, HEADS)], None),
    "twice as large and hidden in part": ([numpy.where(HEADS > 1, -1e9, 2 * HEADS)], None),
    "heads cut by view": ([HEADS.transpose(0, 2, 1, 3).reshape(2, 3, 4, 5)], None),
    "heads side by side": ([HEADS.transpose(0, 2, 1, 3).reshape(2, 4, 15)], None),
    "other numbers": ([OTHER], None),
    "negative": ([-HEADS], None),
    "a head that is missing": (list(HEADS.transpose(1, 0, 2, 3)[:2]), None),
    "nothing": ([], None),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_value_is_found_in_the_forms_of_right_code_alone(form: str) -> None:
    made, expected = FORMS[form]
    found = match(HEADS, made, TOLERANCE)
    if expected is None:
        assert found is None
    else:
        assert (found.place, found.order) == (expected.place, expected.order)
        assert found.factor == pytest.approx(expected.factor)


@pytest.mark.parametrize("fill, equals", [(-1e9, True), (-numpy.inf, True), (-10.0, False)])
def test_any_very_small_number_stands_for_minus_infinity(fill: float, equals: bool) -> None:
    blocked = OTHER > 1
    right = numpy.where(blocked, -numpy.inf, HEADS)
    assert (match(right, [numpy.where(blocked, fill, HEADS)], TOLERANCE) == Match(0)) == equals


def test_few_or_equal_numbers_tell_nothing() -> None:
    assert is_telling(HEADS)
    assert not is_telling(HEADS[0, 0, 0, :3])
    assert not is_telling(numpy.ones((3, 4)))
    assert not is_telling(numpy.full((3, 4), -numpy.inf))
