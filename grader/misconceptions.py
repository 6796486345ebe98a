"""What an author writes in hints/misconceptions/<slug>.py: wrong answers and their symptoms.

And the intermediate values of a right answer: the report names the first wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

Judgement = TypeVar("Judgement", bound=Callable[..., bool])
Naming = TypeVar("Naming", bound=Callable[..., Iterable[Any]])
Implementation = TypeVar("Implementation", bound=Callable[..., Any])

MARK = "__misconception__"
LONGEST = 300  # characters of a sentence


@dataclass(frozen=True)
class Misconception:
    """A wrong implementation of one entry point, and the sentence for a learner who wrote it."""

    id: str
    replaces: str
    says: str
    hint: int | None
    implementation: Callable[..., Any]

    def among(self, right: Callable[[str], Any]) -> Callable[[str], Any]:
        """The entry points that `right` finds, with this one in place of what it replaces."""
        return lambda name: self.implementation if name == self.replaces else right(name)


@dataclass(frozen=True)
class Symptom:
    """A relation between an entry point's wrong answer and the right one, and its sentence."""

    id: str
    of: str
    says: str
    hint: int | None
    holds: Callable[..., bool]


@dataclass(frozen=True)
class Value:
    """An intermediate tensor of a right answer, with its name and those of its `axes`.

    `room` is the relative and the absolute difference of equal numbers, if not that of the dtype.

    >>> Value("the scores", q @ k.transpose(-2, -1), "B H Tq Tk")
    """

    name: str
    tensor: Any
    axes: str = ""
    room: tuple[float, float] | None = None


@dataclass(frozen=True)
class Way:
    """The intermediate values of an entry point's right answer, in order."""

    of: str
    values: Callable[..., Iterable[Value | tuple[Value, ...]]]


@dataclass(frozen=True)
class Known:
    """The misconceptions and symptoms that the author knows for a stage, in the file's order."""

    misconceptions: tuple[Misconception, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    ways: tuple[Way, ...] = ()


def misconception(
    id: str, *, replaces: str, says: str, hint: int | None = None
) -> Callable[[Implementation], Implementation]:
    """Mark a function or class as the misconception `id` of the entry point `replaces`.

    A class takes over the entry point's name, which a learner's class has too. Raises ValueError if
    `says` is empty or has more than `LONGEST` characters, or `hint` is no number.
    """
    _expect_words(id, says, hint)

    def mark(implementation: Implementation) -> Implementation:
        setattr(implementation, MARK, Misconception(id, replaces, says, hint, implementation))
        if isinstance(implementation, type):
            implementation.__name__ = replaces
        return implementation

    return mark


def symptom(
    id: str, *, of: str, says: str, hint: int | None = None
) -> Callable[[Judgement], Judgement]:
    """Mark a function as the symptom `id` of the entry point `of`.

    The kit calls it as `holds(got, expected, **arguments)`: what the learner's code returned, what
    the solution returns, and the arguments by name. It returns whether the relation that `says`
    states holds for every number; an exception means no. Raises ValueError if `says` is empty or
    has more than `LONGEST` characters, or `hint` is no number.
    """
    _expect_words(id, says, hint)

    def mark(holds: Judgement) -> Judgement:
        setattr(holds, MARK, Symptom(id, of, says, hint, holds))
        return holds

    return mark


def values(*, of: str) -> Callable[[Naming], Naming]:
    """Mark a generator as the intermediate values of the right answer of the entry point `of`.

    It is called with the arguments of a function; of a class with the solution's module, which
    holds the learner's parameters, and the arguments of its forward. It yields each `Value` in
    order, those that do not depend on each other as one tuple. The last one is an answer.
    """

    def mark(naming: Naming) -> Naming:
        setattr(naming, MARK, Way(of, naming))
        return naming

    return mark


def _expect_words(id: str, says: str, hint: int | None) -> None:
    if not isinstance(says, str):
        raise ValueError(f"'{id}': says is a sentence, not {says!r}")
    if hint is not None and type(hint) is not int:
        raise ValueError(f"'{id}': hint is the number of a hint, not {hint!r}")
    if not says.strip() or len(says) > LONGEST:
        fault = f"has {len(says)} characters: use {LONGEST} at most" if says.strip() else "is empty"
        raise ValueError(f"'{id}': says {fault}")
