"""Constant answers have the type and the size of the right one, and none of its content."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.authoring.verify.constants import constants
from grader.types.course import EntryPoint, Stage

STAGE = Stage("f", "F", 1, False, (), (EntryPoint("f", ("any",)),), Path())


@dataclass(frozen=True)
class Token:
    text: str
    start: int


@pytest.mark.parametrize(
    "right, zeros",
    [
        ("word", "0000"),
        (b"ab", b"00"),
        (2 + 1j, 0),
        ({3, 4}, {0}),
        ({(1, 2): [3, "a"]}, {(1, 2): [0, "0"]}),
        ([Token("the", 4)], [Token("000", 0)]),
        (SimpleNamespace(words=["a"]), SimpleNamespace(words=["0"])),
        (map(str, (10, 2)), ["00", "0"]),
    ],
)
def test_plain_values_are_filled_with_zeros(right: Any, zeros: Any) -> None:
    found = {constant.name: constant.find("f")(7) for constant in _quiet(right)}
    assert found == {"zeros": zeros, "input": 7, "None": None} | {"ones": found["ones"]}
    assert found["ones"] not in (right, zeros)


@pytest.mark.parametrize("right", ["", b"", [], set(), {}], ids=repr)
def test_an_odd_answer_is_another_even_if_the_right_one_is_empty(right: Any) -> None:
    found = {constant.name: constant for constant in constants(STAGE, lambda _: lambda _: right)}
    assert found["zeros"].find("f")(7) == right != found["odd"].find("f")(7)


def test_a_generator_that_raises_is_no_error_of_a_constant() -> None:
    def refusing(x: int) -> Iterator[int]:
        yield x
        raise ValueError

    found = {each.name: each for each in constants(STAGE, lambda _: refusing)}
    assert found["zeros"].find("f")(7) == 0


def _quiet(right: Any) -> list[Any]:
    """The constants that raise no error."""
    names = ("zeros", "ones", "input", "None")
    return [each for each in constants(STAGE, lambda _: lambda _: right) if each.name in names]
