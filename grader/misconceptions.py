"""What an author writes in hints/misconceptions/<slug>.py: small wrong answers with a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Implementation = TypeVar("Implementation", bound=Callable[..., Any])

MARK = "__misconception__"


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
    """Mark a function or class as the misconception `id` of the entry point `replaces`."""

    def mark(implementation: Implementation) -> Implementation:
        setattr(implementation, MARK, Misconception(id, replaces, says, hint, implementation))
        return implementation

    return mark
