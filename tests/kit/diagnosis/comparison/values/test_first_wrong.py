"""What is told of the way to an answer is true, or nothing is told."""

import time
from typing import Any

import numpy
import pytest

from grader.diagnosis.comparison.values.first_wrong import Made, Right, first_wrong
from grader.diagnosis.comparison.values.matching import Tolerance
from grader.run.budget import Budget, Spent

TOLERANCE = Tolerance(1e-3, 1e-5)
DRAW = numpy.random.default_rng(5)
Q, K, SCORES, OUT, WRONG = (DRAW.normal(size=(2, 3, 4)) for _ in range(5))


def right(name: str, array: Any) -> Right:
    return Right(f"the {name}", array, ("B", "T", "D"), TOLERANCE)


WAY = [[right("query", Q), right("key", K)], [right("scores", SCORES)], [right("output", OUT)]]
GETS, MAKES = "Your forward gets ", "Your forward makes "
NEXT = "None of its tensors equals what comes next: "
BOTH = f"{MAKES}the query and the key (f.py, line 1)"
LATER = f"{MAKES}the query and the key (f.py, line 2). {NEXT}the scores (B, T, D)."
NO_SCORES = f"{BOTH}. {NEXT}the scores (B, T, D)."
NO_OUTPUT = f"{NEXT}the output (B, T, D)."
SCORES_COME = f"{BOTH}. What comes next: the scores (B, T, D)."
TRIPLED = f"{SCORES_COME} Your numbers are 3 times these (f.py, line 2)."
NEARLY = f"{SCORES_COME} In f.py, line 2, your numbers are nearly these, but differ by up to 0.0"
MOVED = "your tensor holds exactly the right numbers, each one once"
TOLD: dict[str, tuple[list[Any], str | None]] = {
    "the scores are wrong": ([Q, K, WRONG], NO_SCORES),
    "one of two is wrong": ([Q, WRONG], f"{GETS}the query right (f.py, line 0). {NEXT}the key"),
    "another beside it was wrong": (
        [Q, WRONG, SCORES],
        f"{GETS}the scores right (f.py, line 2). {NO_OUTPUT} None equals the key (B, T, D) either.",
    ),
    "the output is wrong": ([Q, K, SCORES], f"{GETS}the scores right (f.py, line 2). {NO_OUTPUT}"),
    "another way to the scores": ([WRONG, SCORES], f"{GETS}the scores right (f.py, line 1). "),
    "a factor": ([Q, K, 3 * SCORES], TRIPLED),
    "a factor, and copies": ([Q, K, 3 * SCORES, 3 * SCORES], TRIPLED),
    "a factor that comes later than the author's": (
        [Q, K, 3 * SCORES, OUT / 2],
        (
            f"{BOTH}. After that: the output (B, T, D). "
            "Your numbers are 0.5 times these (f.py, line 3)."
        ),
    ),
    "a factor, before all numbers become 0": ([Q, K, 3 * SCORES, 0 * SCORES], NO_SCORES),
    "a factor, before all numbers become -inf": (
        [Q, K, 3 * SCORES, numpy.full_like(SCORES, -numpy.inf)],
        NO_SCORES,
    ),
    "an axis cut in two, which has no order": (
        [SCORES.transpose(0, 2, 1)[:, :, None]],
        f"{GETS}the scores right (f.py, line 0). {NO_OUTPUT}",
    ),
    "axes": (
        [SCORES.transpose(0, 2, 1)],
        f"{GETS}the scores right (f.py, line 0), with the axes in the order (B, D, T). {NO_OUTPUT}",
    ),
    "the next is there in other places": (
        [Q, K, SCORES.reshape(2, 4, 3).transpose(0, 2, 1)],
        f"{BOTH}, but not the scores (B, T, D). In f.py, line 2, {MOVED}, but in other places.",
    ),
    "one beside it was there in part": (
        [Q, numpy.where(K > 0, K, 0), SCORES],
        (
            f"{GETS}the scores right (f.py, line 2), but not the key (B, T, D). In f.py, line 1, "
            "your tensor holds 0 at some positions"
        ),
    ),
    "the first is there in part": (
        [numpy.where(Q > 0, Q, 0)],
        (
            "The answer begins with the query (B, T, D). In f.py, line 0, your tensor holds 0 at "
            "some positions where other numbers are expected."
        ),
    ),
    "what relates to the next was made before": ([numpy.where(SCORES > 0, SCORES, 0), Q, K], LATER),
    "a tensor of zeros": ([Q, K, numpy.zeros_like(SCORES)], NO_SCORES),
    "nothing is right": (
        [WRONG],
        (
            "None of the tensors that your forward makes equals the query (B, T, D) or the "
            "key (B, T, D): the answer begins with these."
        ),
    ),
    "all is right": (
        [Q, OUT],
        f"{GETS}the output right (f.py, line 1): what is wrong comes after that, or beside it.",
    ),
    "all is right, with an axis too many": ([Q, OUT, OUT[None]], None),
    "all is right, with an axis too many for a while": (
        [Q, OUT[None], OUT],
        f"{GETS}the output right (f.py, line 2): what is wrong comes after that, or beside it.",
    ),
    "one beside it is there in other places": (
        [K.reshape(2, 4, 3).transpose(0, 2, 1), Q],
        (
            f"{GETS}the query right (f.py, line 1), but not the key (B, T, D). "
            f"In f.py, line 0, {MOVED}"
        ),
    ),
    "a multiple of the next, then something else": (
        [Q, K, SCORES * 2, SCORES[..., ::-1]],
        (
            f"{BOTH}, but not the scores (B, T, D). In f.py, line 3, your tensor is the right one "
            "with D reversed."
        ),
    ),
    "what is right is scaled, which may be right": ([Q, Q / 2, K, WRONG], LATER),
    "a mean of what is right begins with it, as under a causal mask": (
        [Q, K, K.cumsum(1) / numpy.arange(1, 4)[:, None], WRONG],
        NO_SCORES,
    ),
    "nearly a multiple of the next": ([Q, K, SCORES * 1.002], NEARLY),
    "nearly the next, and copies": ([Q, K, *[SCORES + 0.002 * SCORES**2] * 2], NEARLY),
    "one beside it is wrong, one nearly right": (
        [Q + 0.002 * Q**2, WRONG],
        (
            "None of the tensors that your forward makes equals the key (B, T, D): the answer "
            "begins with that."
        ),
    ),
    "nothing was made": ([], None),
}


@pytest.mark.parametrize("case", TOLD)
def test_it_tells_the_last_right_value_and_the_next(case: str) -> None:
    arrays, expected = TOLD[case]
    made = [Made(array, f"f.py, line {number}") for number, array in enumerate(arrays)]
    found = first_wrong(WAY, made, "forward")
    assert (found and found.text[: len(expected or "")]) == expected


@pytest.mark.parametrize(("number", "shown"), [(-1e9, "-1e+09"), (-numpy.inf, "-inf")])
def test_a_large_negative_number_is_minus_infinity_only_where_that_is_due(
    number: float, shown: str
) -> None:
    way = [WAY[0], [right("masked scores", numpy.where(SCORES > 0, SCORES, -numpy.inf))], WAY[2]]
    tensor = numpy.where(SCORES > 0, SCORES, -1e9)
    tensor[numpy.unravel_index(SCORES.argmax(), SCORES.shape)] = number
    found = first_wrong(way, [Made(each, "f.py, line 1") for each in (Q, K, tensor)], "forward")
    assert f"is expected, your tensor holds {shown}. All other numbers are right." in found.text


@pytest.mark.parametrize(
    ("number", "said"), [(-1e9, ", with -1e+09 in place of -inf"), (-numpy.inf, "")]
)
def test_another_number_in_place_of_minus_infinity_is_not_called_right(
    number: float, said: str
) -> None:
    way = [WAY[0], [right("masked scores", numpy.where(SCORES > 0, SCORES, -numpy.inf))], WAY[2]]
    made = [Q, K, numpy.where(SCORES > 0, SCORES, number), WRONG]
    found = first_wrong(way, [Made(each, "f.py, line 1") for each in made], "forward")
    assert found.text.startswith(f"{GETS}the masked scores right{said} (f.py, line 1). {NEXT}")


def test_how_a_tensor_of_an_unknown_line_relates_is_a_sentence_of_its_own() -> None:
    found = first_wrong(WAY, [Made(numpy.where(Q > 0, Q, 0), "")], "forward")
    assert found.text.startswith("The answer begins with the query (B, T, D). Your tensor holds 0")


def test_a_value_that_is_scaled_on_another_way_is_not_called_missing() -> None:
    found = first_wrong(WAY, [Made(each, "f.py, line 1") for each in (Q, K / 2, SCORES)], "forward")
    assert found.text == f"{GETS}the scores right (f.py, line 1). {NEXT}the output (B, T, D)."


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            [6 * SCORES, 3 * SCORES],
            "The answer needs the scores (B, T, D). Your numbers are 3 times these (f.py, line 1).",
        ),
        ([6 * SCORES, SCORES[:, ::-1]], "The answer begins with the scores (B, T, D). In f.py, "),
        ([2 * SCORES, OUT / 2], "The answer needs the output (B, T, D). Your numbers are 0.5 "),
        ([2 * SCORES, OUT], f"{GETS}the output right (f.py, line 1): what is wrong comes after"),
    ],
)
def test_the_first_value_may_be_there_but_for_a_factor(made: list[Any], expected: str) -> None:
    tensors = [Made(each, f"f.py, line {number}") for number, each in enumerate(made)]
    found = first_wrong(WAY[1:], tensors, "forward")
    assert found.text.startswith(expected)


POWERS = numpy.exp(SCORES - SCORES.max(-1, keepdims=True))
SUMS = POWERS.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ([], ", but not the weights (B, T, D). In f.py, line 1, your tensor has the right prop"),
        ([POWERS], ", but not the weights (B, T, D). In f.py, line 1, your tensor has the right"),
        (
            [POWERS / (SUMS + 1)],
            ", but not the weights (B, T, D). In f.py, line 2, your tensor has",
        ),
        ([WRONG], f". {NEXT}the weights (B, T, D)."),
    ],
)
def test_powers_are_not_called_wrong_weights_if_other_numbers_are_made_of_them(
    then: list[Any], expected: str
) -> None:
    way = [[right("scores", SCORES)], [right("weights", POWERS / SUMS)]]
    made = [Made(each, f"f.py, line {n}") for n, each in enumerate([SCORES, POWERS, *then])]
    found = first_wrong(way, made, "forward")
    assert found.text.startswith(f"{GETS}the scores right (f.py, line 0){expected}")


def test_a_value_that_repeats_an_earlier_one_is_left_out() -> None:
    way = [*WAY[:2], [right("masked scores", SCORES)], WAY[2]]
    found = first_wrong(way, [Made(SCORES, "")], "forward")
    assert found.text == f"{GETS}the scores right. {NEXT}the output (B, T, D)."


def test_a_value_that_cannot_be_known_by_its_numbers_is_never_what_comes_next() -> None:
    way = [*WAY[:2], [right("weights", numpy.ones((2, 3, 4)))], WAY[2]]
    assert first_wrong(way, [Made(SCORES, "")], "forward") is None


def test_tensors_that_nearly_match_are_compared_no_longer_than_there_is_time() -> None:
    """Every piece of each value but the first is there, behind many others of its shape."""
    values = [DRAW.normal(size=(2, 4, 5, 8)) for _ in range(10)]
    near = [value[b, h] for value in values for b in range(2) for h in range(4) if b + h]
    made = [Made(array, "") for array in (*near, *DRAW.normal(size=(230, 5, 8)))]
    way = [[Right(f"value {n}", value, (), TOLERANCE)] for n, value in enumerate(values)]
    start = time.monotonic()
    with pytest.raises(Spent):
        first_wrong(way, made, "forward", Budget(0.1).expect_some)
    assert time.monotonic() - start < 2
