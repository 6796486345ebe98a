"""What an author writes in hints/misconceptions/<slug>.py: small wrong answers with a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

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


def misconception(
    id: str, *, replaces: str, says: str, hint: int | None = None
) -> Callable[[Implementation], Implementation]:
    """Mark a function or class as the misconception `id` of the entry point `replaces`.

    Raises ValueError for `says` without words, or with more than `LONGEST` characters.
    """
    if not says.strip() or len(says) > LONGEST:
        said = f"has {len(says)} characters: use {LONGEST} at most" if says.strip() else "is empty"
        raise ValueError(f"'{id}': says {said}")

    def mark(implementation: Implementation) -> Implementation:
        setattr(implementation, MARK, Misconception(id, replaces, says, hint, implementation))
        return implementation

    return mark
