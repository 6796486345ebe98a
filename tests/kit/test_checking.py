"""What a check says of a wrong answer, in the same words for tensors and for arrays of numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from grader.checking import (
    CheckFailed,
    draw_array,
    expect_close,
    expect_dtype,
    expect_raises,
    expect_shape,
    expect_unchanged,
)

Make = Callable[..., Any]
# How each library makes an array of nested lists, by the name of a dtype.
MAKE: dict[str, Make] = {
    "torch": lambda values, dtype="float32": torch.tensor(values, dtype=getattr(torch, dtype)),
    "numpy": lambda values, dtype="float32": np.array(values, dtype=dtype),
}


@pytest.fixture(params=MAKE)
def make(request: pytest.FixtureRequest) -> Make:
    return MAKE[request.param]


def said(actual: Any, expected: Any, axes: str, **room: Any) -> str:
    with pytest.raises(CheckFailed) as failed:
        expect_close(actual, expected, axes=axes, **room)
    return str(failed.value)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "bool"])
def test_what_is_right_is_met_with_silence(make: Make, dtype: str) -> None:
    expect_close(make([[1, 0], [0, 1]], dtype), make([[1, 0], [0, 1]], dtype), axes="B T")


def test_the_first_wrong_place_is_told_with_its_row(make: Make) -> None:
    assert said(make([[1.0, 2.0], [3.5, 4.0]]), make([[1.0, 2.0], [3.0, 5.0]]), "B T") == (
        "The result is wrong at B=1, T=0\n"
        "  expected  3    in the row  [3, 5]\n"
        "  got       3.5  in the row  [3.5, 4]\n"
        "  2 of 4 values are wrong, by at most 1"
    )


def test_a_wrong_shape_is_told_by_the_axes(make: Make) -> None:
    assert said(make([1.0, 2.0]), make([[1.0], [2.0]]), "B T") == (
        "The shape of the result is wrong\n  expected  [B=2, T=1]\n  got       [2]"
    )
    with pytest.raises(CheckFailed, match=r"expected  \[B=3\]\n  got       \[2\]"):
        expect_shape(make([1.0, 2.0]), B=3)


def test_truths_are_told_as_such(make: Make) -> None:
    message = said(make([True, False], "bool"), make([True, True], "bool"), "T", what="the sign")
    assert message.splitlines()[:2] == [
        "The sign is wrong at T=1",
        "  expected  True   in the row  [True, True]",
    ]


def test_nan_and_infinities_have_their_places(make: Make) -> None:
    inf, nan = float("inf"), float("nan")
    expect_close(make([inf, 1.0]), make([inf, 1.0]), axes="T")
    assert "The result is wrong at T=0" in said(make([-inf, 1.0]), make([inf, 1.0]), "T")
    assert "The result holds NaN at T=1" in said(make([1.0, nan]), make([1.0, 1.0]), "T")
    assert said(make([1.0]), make([nan]), "T") == "The result holds NaN"


def test_complex_numbers_are_compared_whole(make: Make) -> None:
    one, other = make([1 + 2j], "complex128"), make([1 + 3j], "complex128")
    expect_close(one, one, axes="T")
    assert "expected  1+3j" in said(one, other, "T")
    assert "is complex" in said(one, make([1.0], "float64"), "T")


def test_the_room_follows_the_dtype_of_the_answer(make: Make) -> None:
    expect_close(make([1.00001]), make([1.0]), axes="T")
    assert "wrong" in said(make([1.00001], "float64"), make([1.0], "float64"), "T")
    expect_close(make([1.5]), make([1.0]), axes="T", atol=0.6)


def test_a_number_is_an_array_without_axes() -> None:
    expect_close(3.0, 3, axes="")
    assert said(3.5, np.float64(3), "", what="the step") == (
        "The step is wrong\n  expected  3\n  got       3.5"
    )


def test_axes_that_do_not_fit_are_the_authors_fault(make: Make) -> None:
    with pytest.raises(ValueError, match="name 2 axes, expected has 1"):
        expect_close(make([1.0]), make([1.0]), axes="B T")


def test_a_change_in_place_is_told_by_its_place(make: Make) -> None:
    values = make([[1.0, 2.0]])
    with expect_unchanged(values=values):
        values[0, 1] = 2.0
    with (
        pytest.raises(CheckFailed, match=r"changes values in place, at \[0, 1\]\n  before  2\n"),
        expect_unchanged(values=values),
    ):
        values[0, 1] = 7.0


def test_the_dtype_is_told_by_its_name() -> None:
    expect_dtype(np.zeros(2), np.float64)
    expect_dtype(torch.zeros(2), torch.float32)
    with pytest.raises(CheckFailed, match=r"expected  float32\n  got       float64"):
        expect_dtype(np.zeros(2), np.float32)


def test_a_drawn_array_knows_its_axes_and_what_is_made_of_it_may_have_others() -> None:
    values = draw_array(np.random.default_rng(3), 2.0, n=3, m=4)
    assert values.axes == ("n", "m") and values.shape == (3, 4) and values.dtype == np.float64
    again = draw_array(np.random.default_rng(3), 2.0, n=3, m=4)
    assert np.array_equal(values, again)
    assert (values @ values.T).shape == (3, 3)
    expect_close(values.sum(axis=1), np.asarray(values).sum(axis=1), axes="n")
    with (
        pytest.raises(CheckFailed, match="changes values in place, at n=0, m=0"),
        expect_unchanged(values=values),
    ):
        values += 1


def test_an_error_that_is_due_and_does_not_come_is_told() -> None:
    with (
        pytest.raises(CheckFailed, match=r"too wide\n  expected  ValueError\n  got       no error"),
        expect_raises(ValueError, "too wide"),
    ):
        pass
