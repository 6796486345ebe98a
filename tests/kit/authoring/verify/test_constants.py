"""Constant answers have the type and the size of the right one, and none of its content."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
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
    ],
    ids=repr,
)
def test_plain_values_are_filled_with_zeros(right: Any, zeros: Any) -> None:
    found = {constant.name: constant.find("f")(7) for constant in _quiet(right)}
    assert found == {"zeros": zeros, "input": 7, "None": None} | {"ones": found["ones"]}
    assert found["ones"] not in (right, zeros)


def _quiet(right: Any) -> list[Any]:
    """The constants that raise no error."""
    names = ("zeros", "ones", "input", "None")
    return [each for each in constants(STAGE, lambda _: lambda _: right) if each.name in names]
