"""What a check says of a wrong answer, in the same words for tensors and for arrays of numpy."""

import doctest
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

from grader import checking
from grader.checking import (
    CheckFailed,
    are_close,
    comparisons,
    draw,
    draw_array,
    expect_all_different,
    expect_close,
    expect_dtype,
    expect_equal,
    expect_gradients_close,
    expect_parameters,
    expect_raises,
    expect_shape,
    expect_unchanged,
    expect_within,
    is_between,
)
from grader.run.failures import WrongReturn
from grader.run.worker.packing import PlainObject
from grader.types.report import Way


class Slow(np.ndarray[Any, Any]):
    """An array that nobody may compare or write out, because both take minutes."""

    def __eq__(self, other: object) -> Any:
        raise AssertionError

    __repr__ = __str__ = __ne__ = __eq__


class Counted:
    """An entry that counts how often it is written out and compared."""

    seen = 0

    def __eq__(self, other: object) -> bool:
        Counted.seen += 1
        return self is other

    def __repr__(self) -> str:
        Counted.seen += 1
        return "Counted()"


# What the engine takes from the language, and checks do not.
ENGINES_OWN = {"comparisons", "draw", "draw_array", "is_watched"}
INF, NAN = float("inf"), float("nan")
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


def test_other_names_are_shown_beside_the_missing_ones() -> None:
    with pytest.raises(CheckFailed, match=r"missing +w_q\n  found +c_attn"):
        expect_parameters({"c_attn": torch.ones(2)}, {"w_q": (2,)}, others=True)


def test_a_module_without_parameters_is_explained() -> None:
    with pytest.raises(CheckFailed, match=r"\(\) is empty\n  missing +w_q\n  in words +layers co"):
        expect_parameters({}, {"w_q": (2,)}, others=True)


def test_a_small_matrix_is_shown_whole_with_its_wrong_values_marked(make: Make) -> None:
    assert said(make([[1.0, 2.0], [3.5, 4.0]]), make([[1.0, 2.0], [3.0, 5.0]]), "B T") == (
        "The result is wrong at B=1, T=0 (2 of 4 values, by up to 1)\n"
        "  expected, B down, T across  got (* is wrong)\n"
        "  [  1    2 ]                 [  1    2 ]\n"
        "  [  3    5 ]                 [3.5*   4*]"
    )


def test_of_a_large_array_the_row_is_shown_or_the_value(make: Make) -> None:
    right = np.zeros((5, 3))
    wrong = right.copy()
    wrong[4, 1] = 1e-5
    assert said(make(wrong.tolist(), "float64"), make(right.tolist(), "float64"), "T D") == (
        "The result is wrong at T=4, D=1 (1 of 15 values, by up to 1e-05)\n"
        "  expected  [    0      0      0 ]\n"
        "  got       [    0  1e-05*     0 ]"
    )
    long = said(make([0.5] * 9), make([0.25] * 9), "T").splitlines()
    assert long[1:] == ["  expected  0.25", "  got       0.5"]


def test_as_many_digits_are_shown_as_it_takes_to_see_the_difference(make: Make) -> None:
    close = said(make([1.0001, 2.0], "float64"), make([1.0, 2.0], "float64"), "T")
    assert "[     1       2 ]" in close and "[1.0001*      2 ]" in close


def test_a_zero_is_shown_without_a_sign(make: Make) -> None:
    assert "[0  1 ]" in said(make([-0.0, 2.0]), make([-0.0, 1.0]), "T")


def test_a_failure_says_in_which_way_the_answer_is_wrong(make: Make) -> None:
    for wrong, way in ((make([1.0]), Way.SHAPE), (make([1.0, 3.0]), Way.VALUES)):
        with pytest.raises(CheckFailed) as failed:
            expect_close(wrong, make([1.0, 2.0]), axes="T")
        assert failed.value.way is way


def test_a_wrong_shape_is_told_by_the_axes(make: Make) -> None:
    assert said(make([1.0, 2.0]), make([[1.0], [2.0]]), "B T") == (
        "The shape of the result is wrong\n  expected  [B=2, T=1]\n  got       [2]"
    )
    with pytest.raises(CheckFailed, match=r"expected  \[B=3\]\n  got       \[2\]"):
        expect_shape(make([1.0, 2.0]), B=3)


def test_truths_are_told_as_such(make: Make) -> None:
    message = said(make([True, False], "bool"), make([True, True], "bool"), "T", what="the sign")
    assert message.splitlines()[:2] == [
        "The sign is wrong at T=1 (1 of 2 values)",
        "  expected  [ True   True ]",
    ]


def test_nan_and_infinities_have_their_places(make: Make) -> None:
    expect_close(make([INF, 1.0]), make([INF, 1.0]), axes="T")
    assert "The result is wrong at T=0" in said(make([-INF, 1.0]), make([INF, 1.0]), "T")
    assert "The result holds NaN at T=1" in said(make([1.0, NAN]), make([1.0, 1.0]), "T")
    assert said(make([1.0]), make([NAN]), "T") == "The result holds NaN"


def test_complex_numbers_are_compared_whole(make: Make) -> None:
    one, other = make([1 + 2j], "complex128"), make([1 + 3j], "complex128")
    expect_close(one, one, axes="T")
    assert "expected  1+3j" in said(one, other, "T")
    assert "is complex" in said(one, make([1.0], "float64"), "T")


def test_the_room_follows_the_dtype_of_the_answer(make: Make) -> None:
    expect_close(make([1.00001]), make([1.0]), axes="T")
    assert "wrong" in said(make([1.00001], "float64"), make([1.0], "float64"), "T")
    rounded = said(make([1.0000001], "float64"), make([1.0], "float64"), "T")
    assert rounded.startswith("The result is too imprecise for float64 at T=0")
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
        pytest.raises(CheckFailed, match=r"changes values in place, at \[0, 1\]\n  before    2\n"),
        expect_unchanged(values=values),
    ):
        values[0, 1] = 7.0


def test_two_equal_ones_are_told_by_their_names(make: Make) -> None:
    arrays = {"a": make([1.0, 2.0]), "b": make([1.0, 3.0]), "c": make([1.0]), "d": make([1.0, 3.0])}
    expect_all_different({name: arrays[name] for name in "abc"}, "Two rows are equal")
    with pytest.raises(CheckFailed) as failed:
        expect_all_different(arrays, "Two rows are equal")
    assert str(failed.value) == "Two rows are equal\n  first   b\n  second  d"


def test_the_dtype_is_told_by_its_name() -> None:
    expect_dtype(np.zeros(2), np.float64)
    expect_dtype(torch.zeros(2), torch.float32)
    with pytest.raises(CheckFailed, match=r"expected  float32\n  got       float64"):
        expect_dtype(np.zeros(2), np.float32)
    with pytest.raises(CheckFailed, match="The dtype of the keys is wrong"):
        expect_dtype(np.zeros(2), np.float32, "the keys")


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
    told = r"^too wide\n  expected  ValueError\n  got       no error$"
    with pytest.raises(CheckFailed, match=told), expect_raises(ValueError, "too wide"):
        pass
    with pytest.raises(CheckFailed, match=told), expect_raises(ValueError, "too wide"):
        raise WrongReturn("smooth(...) returned None")  # an answer of another type is none either


# --- what is noted of a comparison ---------------------------------------------------------------


def test_nothing_is_noted_unless_asked_for(make: Make) -> None:
    with comparisons() as noted:
        pass
    expect_close(make([1.0]), make([1.0]), axes="n")
    assert noted == []


@pytest.mark.parametrize(
    ("actual", "expected", "atol", "share"),
    [
        ([1.0, 2.0], [1.0, 2.05], 0.1, 0.5),
        ([1.0, 2.0], [1.0, 3.0], 0.1, 10.0),
        ([1.0, NAN], [1.0, 2.0], 0.1, INF),
        ([1.0, INF], [1.0, 2.0], 0.1, INF),
    ],
)
def test_the_largest_difference_is_noted_in_tolerances_whether_it_fails_or_not(
    make: Make, actual: list[float], expected: list[float], atol: float, share: float
) -> None:
    with comparisons() as noted, pytest.raises(CheckFailed) if share > 1 else nullcontext():
        expect_close(make(actual), make(expected), axes="n", rtol=0.0, atol=atol)
    [one] = noted
    assert (one.kind, one.tolerance, one.is_usual) == ("close", "rtol=0, atol=0.1", False)
    assert one.share == pytest.approx(share, rel=1e-5)


def test_a_usual_tolerance_is_no_wider_than_that_of_the_dtype(make: Make) -> None:
    with comparisons() as noted:
        expect_close(make([1.0]), make([1.0]), axes="n")
        expect_close(make([1.0]), make([1.0]), axes="n", rtol=1e-5)
        expect_close(make([1.0]), make([1.0]), axes="n", rtol=1e-3)
        expect_close(make([1.0], "float64"), make([1.0]), axes="n", rtol=1e-5)
    assert [one.is_usual for one in noted] == [True, True, False, False]


def test_exact_comparisons_have_no_tolerance_to_note(make: Make) -> None:
    with comparisons() as noted:
        expect_close(make([1, 2], "int64"), make([1, 2], "int64"), axes="n")
        expect_close(make([1.0]), make([1.0]), axes="n", rtol=0.0, atol=0.0)
    assert noted == []


def test_infinities_that_are_expected_are_no_difference(make: Make) -> None:
    with comparisons() as noted:
        expect_close(make([1.0, -INF]), make([1.0, -INF]), axes="n")
    assert [one.share for one in noted] == [0.0]


def test_gradients_are_noted_each() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with comparisons() as noted:
        expect_gradients_close(x * y, x * y, {"x": x, "y": y}, axes={"x": "n", "y": "n"})
    assert [one.share for one in noted] == [0.0, 0.0]


def test_each_position_may_have_a_leeway_of_its_own(make: Make) -> None:
    leeway = make([0.1, 10.0])
    with comparisons() as noted:
        expect_within(make([1.0, 2.0]), make([1.05, 4.0]), leeway, axes="n")
    assert [(one.kind, one.tolerance) for one in noted] == [("within", "up to 10")]
    assert noted[0].share == pytest.approx(0.5, rel=1e-5)
    with pytest.raises(CheckFailed) as failed:
        expect_within(make([1.0, 2.0]), make([1.2, 4.0]), leeway, axes="n")
    off = "The result is further off than rounding explains, at n=0"
    assert str(failed.value).splitlines() == [
        f"{off} (1 of 2 values, by up to 0.2)",
        "  expected  1.2, give or take 0.1",
        "  got       1",
    ]
    with pytest.raises(CheckFailed, match="holds NaN at n=1"):
        expect_within(make([1.0, NAN]), make([1.0, 4.0]), leeway, axes="n")
    with pytest.raises(CheckFailed, match=r"expected  1.00000005, give .*\n  got       1$"):
        expect_within(1.0, 1.00000005, 1e-9, axes="")


def test_a_range_is_noted_from_its_middle() -> None:
    with comparisons() as noted:
        assert is_between(1.5, 0.0, 2.0)
        assert not is_between(4.0, 0.0, 2.0)
        assert not is_between(NAN, 0.0, 2.0)
    assert [one.share for one in noted] == [0.5, 3.0, INF]
    assert {(one.kind, one.tolerance) for one in noted} == {("between", "0 to 2")}


def test_where_values_are_close_comes_back_in_the_library_of_the_answer(make: Make) -> None:
    with comparisons() as noted:
        close = are_close(make([1.0, 2.0]), make([1.0, 3.0]), rtol=0.0, atol=0.5)
        partly = are_close(
            make([1.0, 2.0]), make([1.0, 3.0]), rtol=0.0, atol=0.5, where=make([1.0, 0.0])
        )
    assert type(close) is type(make([1.0]))
    assert (close.tolist(), partly.tolist()) == ([True, False], [True, True])
    assert [one.share for one in noted] == [2.0, 0.0]


def test_every_name_of_the_language_has_an_example_that_runs() -> None:
    def rand(scale: float = 1.0, dtype: torch.dtype | None = None, **axes: int) -> torch.Tensor:
        return draw(generator, torch.device("cpu"), dtype, False, scale, **axes)

    def made() -> torch.nn.ModuleDict:
        return torch.nn.ModuleDict({name: torch.nn.Linear(100, 200) for name in ("w_q", "w_o")})

    generator = torch.Generator().manual_seed(1)
    torch.manual_seed(1)
    given = {**vars(checking), "torch": torch, "rand": rand, "made": made}
    examples = doctest.DocTestFinder(recurse=False).find(checking, globs=given)
    assert sum(doctest.DocTestRunner().run(example).failed for example in examples) == 0
    for name in set(checking.__all__) - ENGINES_OWN:
        assert re.search(rf"\b{name}\b", checking.__doc__ or ""), name


# --- plain values ----------------------------------------------------------------------------

EQUAL: dict[str, tuple[Any, Any, dict[str, bool]]] = {
    "a list for a tuple": ([1, (2, [3])], (1, [2, (3,)]), {}),
    "values of a dictionary": ({(1, 2): [3]}, {(1, 2): (3,)}, {}),
    "sets": ({1, (2,)}, frozenset({(2,), 1}), {}),
    "any order": ([[1, 2], {3: 4}, [1, 2]], [{3: 4}, (1, 2), (1, 2)], {"ordered": False}),
    "the same types": ([(1,)], [(1,)], {"same_types": True}),
}
LONG = [f"token {n}" for n in range(20)]
UNEQUAL: dict[str, tuple[Any, Any, dict[str, bool], str]] = {
    "a number": (1, 2, {}, "expected  2|got       1"),
    "another order": ([1, 2], [2, 1], {}, "expected  [2, 1]|got       [1, 2]"),
    "another length": ([1], [1, 1], {"ordered": False}, "expected  [1, 1]|got       [1]"),
    "once instead of twice": ([1, 2, 2], [1, 1, 2], {"ordered": False}, "got       [1, 2, 2]"),
    "a list for a tuple, if asked": ([[1]], [(1,)], {"same_types": True}, "expected  [(1,)]"),
    "a set in one order": ({"b", "a"}, {"c", "a"}, {}, "expected  {'a', 'c'}|got       {'a', 'b'}"),
    "a list for a set": ([1], {1}, {}, "expected  {1}|got       [1]"),
    "None": (None, [1], {}, "got       None"),
    "the end of a long list": (
        (LONG[:-1], LONG, {}, "wrong at [19]|expected  ['token 19']|got       []")
    ),
    "an entry of a long list": (
        ([*LONG[:9], 0, *LONG[10:]], LONG, {}, "wrong at [9]|expected  ['token 9']|got       [0]")
    ),
    "long lists in any order": (
        ([*LONG[1:], 0], LONG, {"ordered": False}, "entries differ|['token 0']|got       [0]")
    ),
    "long sets": (({*LONG[1:], 0}, set(LONG), {}, "entries differ|{'token 0'}|got       {0}")),
    "long dictionaries": (
        (dict.fromkeys(LONG, 0), {**dict.fromkeys(LONG, 0), "token 3": 1}, {}, "{'token 3': 1}")
    ),
    "a large array": (np.zeros(2000), [1], {}, "expected  [1]|got       ndarray of shape [2000]"),
    "an object": (PlainObject("P", {"x": np.zeros(2000)}), 1, {}, "P(x=ndarray of shape [2000])"),
    "an array for a number": ([torch.ones(2), 3], [1, 3], {}, "expected  [1, 3]|got       [tensor"),
    "a long text": ("a" * 999, [], {}, "expected  []|got       'aaa"),
}


@pytest.mark.parametrize("actual, expected, how", EQUAL.values(), ids=EQUAL)
def test_plain_values_are_equal_whatever_was_not_asked_for(
    actual: Any, expected: Any, how: dict[str, bool]
) -> None:
    expect_equal(actual, expected, "the pairs", **how)


@pytest.mark.parametrize("actual, expected, how, parts", UNEQUAL.values(), ids=UNEQUAL)
def test_plain_values_that_differ_are_shown_where_they_do(
    actual: Any, expected: Any, how: dict[str, bool], parts: str
) -> None:
    with pytest.raises(CheckFailed) as failed:
        expect_equal(actual, expected, "the pairs", **how)
    message = str(failed.value)
    assert message.startswith("The pairs came out wrong") and len(message) < 600
    assert all(part in message for part in parts.split("|")), message


@pytest.mark.parametrize("ordered", [True, False])
def test_large_arrays_are_neither_compared_nor_written_out(ordered: bool) -> None:
    slow = np.zeros(2000).view(Slow)
    with pytest.raises(CheckFailed, match=r"Slow of shape \[2000\]"):
        expect_equal([slow] * 100, list(range(100)), "the pairs", ordered=ordered)


@pytest.mark.parametrize("ordered", [True, False])
def test_of_many_entries_few_are_looked_at(ordered: bool) -> None:
    Counted.seen = 0
    with pytest.raises(CheckFailed):
        expect_equal([Counted() for _ in range(10_000)], ["x" * 99], "the pairs", ordered=ordered)
    assert Counted.seen < 11_000


def test_what_is_no_array_is_the_learners_mistake_or_the_authors() -> None:
    for compare in (
        lambda: expect_close([1.0], np.ones(1), axes="n"),
        lambda: expect_shape([1.0], n=1),
        lambda: expect_dtype([1.0], float),
    ):
        with pytest.raises(CheckFailed, match=r"has the wrong type\n .*\n  got       a list"):
            compare()
    with pytest.raises(TypeError, match="not a list: expect_equal compares other values"):
        expect_close(np.ones(1), [1.0], axes="n")
    with (
        pytest.raises(TypeError, match="watches tensors and arrays, not items, a list"),
        expect_unchanged(items=[1.0]),
    ):
        pass
