"""`grade verify` expects that a solution makes the values that its stage lists."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from grader.authoring.verify.runs import Find
from grader.authoring.verify.ways import way_problems
from grader.misconceptions import Value, Way

X = torch.arange(6.0).reshape(2, 3)


def solution(x: Tensor) -> Tensor:
    return torch.softmax(x / 2, dim=-1)


def right(x: Tensor) -> Iterator[Value]:
    yield Value("the half", x / 2)
    yield Value("the weights", torch.softmax(x / 2, dim=-1))


def never_made(x: Tensor) -> Iterator[Value]:
    yield Value("the third", x / 3)
    yield Value("the weights", torch.softmax(x / 2, dim=-1))


def another_end(x: Tensor) -> Iterator[Value]:
    yield Value("the half", x / 2)


def raises(x: Tensor) -> Iterator[Value]:
    yield Value("the half", x.half_of())


WAYS: dict[Callable[..., Iterator[Value]], str] = {
    right: "",
    never_made: "the values of attend: the solution does not make 'the third'",
    another_end: "the values of attend: the last one is never what the solution returns",
    raises: "the values of attend raise AttributeError: 'Tensor' object has no attribute 'half_of'",
}


@pytest.mark.parametrize("way", WAYS)
def test_it_says_which_value_the_solution_does_not_make(
    way: Callable[..., Iterator[Value]],
) -> None:
    def run(find: Find) -> None:
        assert find("attend")(X).equal(solution(X))

    problems = way_problems([Way("attend", way)], lambda name: solution, run)
    assert problems == [WAYS[way]] * bool(WAYS[way])
