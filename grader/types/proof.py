"""What `grade verify` has proven of a course's stages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MisconceptionProof:
    """What became of one misconception: the checks that caught it, and the name it was given.

    `same_as` are the ids of those that answer every request of the checks exactly as this one does.
    """

    id: str
    caught_by: tuple[str, ...]
    named: str | None
    same_as: tuple[str, ...]


@dataclass(frozen=True)
class StageProof:
    """What was proven of one stage; `problems` is empty if all is well."""

    slug: str
    checks: int
    misconceptions: tuple[MisconceptionProof, ...]
    problems: tuple[str, ...]
