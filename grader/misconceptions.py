"""What an author writes in hints/misconceptions/<slug>.py: wrong answers and their symptoms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Judgement = TypeVar("Judgement", bound=Callable[..., bool])
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


@dataclass(frozen=True)
class Symptom:
    """A relation between an entry point's wrong answer and the right one, and its sentence."""

    id: str
    of: str
    says: str
    hint: int | None
    holds: Callable[..., bool]


@dataclass(frozen=True)
class Known:
    """The misconceptions and symptoms that the author knows for a stage, in the file's order."""

    misconceptions: tuple[Misconception, ...] = ()
    symptoms: tuple[Symptom, ...] = ()


def misconception(
    id: str, *, replaces: str, says: str, hint: int | None = None
) -> Callable[[Implementation], Implementation]:
    """Mark a function or class as the misconception `id` of the entry point `replaces`.

    Raises ValueError if `says` is empty or has more than `LONGEST` characters.
    """
    _expect_words(id, says)

    def mark(implementation: Implementation) -> Implementation:
        setattr(implementation, MARK, Misconception(id, replaces, says, hint, implementation))
        return implementation

    return mark


def symptom(
    id: str, *, of: str, says: str, hint: int | None = None
) -> Callable[[Judgement], Judgement]:
    """Mark a function as the symptom `id` of the entry point `of`.

    The kit calls it as `holds(got, expected, **arguments)`: what the learner's code returned, what
    the solution returns, and the arguments by name. It returns whether the relation that `says`
    states holds for every number; an exception means no. Raises ValueError if `says` is empty or
    has more than `LONGEST` characters.
    """
    _expect_words(id, says)

    def mark(holds: Judgement) -> Judgement:
        setattr(holds, MARK, Symptom(id, of, says, hint, holds))
        return holds

    return mark


def _expect_words(id: str, says: str) -> None:
    if not says.strip() or len(says) > LONGEST:
        fault = f"has {len(says)} characters: use {LONGEST} at most" if says.strip() else "is empty"
        raise ValueError(f"'{id}': says {fault}")
