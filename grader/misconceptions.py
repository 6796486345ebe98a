"""What an author writes in hints/misconceptions/<slug>.py: wrong answers, and how they look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Judgement = TypeVar("Judgement", bound=Callable[..., bool])
Implementation = TypeVar("Implementation", bound=Callable[..., Any])

MARK = "__misconception__"
LONGEST = 300  # characters of what is said


@dataclass(frozen=True)
class Misconception:
    """A wrong implementation of one entry point and the sentence for whoever holds it."""

    id: str
    replaces: str
    says: str
    hint: int | None
    implementation: Callable[..., Any]


@dataclass(frozen=True)
class Symptom:
    """A relation between a wrong answer of an entry point and the right one, and how to say it."""

    id: str
    of: str
    says: str
    hint: int | None
    holds: Callable[..., bool]


@dataclass(frozen=True)
class Known:
    """What the author knows of a stage's mistakes, each in the file's order."""

    misconceptions: tuple[Misconception, ...] = ()
    symptoms: tuple[Symptom, ...] = ()


def misconception(
    id: str, *, replaces: str, says: str, hint: int | None = None
) -> Callable[[Implementation], Implementation]:
    """Mark a function or class as the misconception `id` of the entry point `replaces`.

    Raises ValueError for `says` without words, or with more than `LONGEST` characters.
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

    It is called as `holds(got, expected, **arguments)`: what the learner's code returned, what the
    solution returns, and the arguments by name. It tells whether the relation that `says` states
    holds for every number; an exception of its own means no. Raises ValueError for `says` without
    words, or with more than `LONGEST` characters.
    """
    _expect_words(id, says)

    def mark(holds: Judgement) -> Judgement:
        setattr(holds, MARK, Symptom(id, of, says, hint, holds))
        return holds

    return mark


def _expect_words(id: str, says: str) -> None:
    if not says.strip() or len(says) > LONGEST:
        said = f"has {len(says)} characters: use {LONGEST} at most" if says.strip() else "is empty"
        raise ValueError(f"'{id}': says {said}")
