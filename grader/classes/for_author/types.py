"""What a class teaches the author of its course."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Seen:
    """Answers to a stage that fail alike and that no known mistake explains.

    `says` is what the feedback says: a symptom, which `has_symptom`, or the title of a check.
    `failing` and `passing` are the ids of checks, `message` is that of the check to fix first.
    `code` is the shortest of the answers' code for the `entry` point, without comments, under
    another `name`; "" if none can be read.
    """

    stage: str
    says: str
    has_symptom: bool
    students: int
    failing: tuple[str, ...]
    passing: tuple[str, ...]
    message: str
    entry: str = ""
    name: str = ""
    code: str = ""


@dataclass(frozen=True)
class HintUse:
    """How many students opened hints of a stage, at most the one of this `number`.

    Some have `passed` the stage since then; the others still `failed`.
    """

    stage: str
    number: int
    heading: str
    passed: int
    failed: int


@dataclass(frozen=True)
class Lessons:
    """What a class teaches: the most common failures first, the hints that helped least first.

    `asked` is how many students' hints are known, of `students`.
    """

    students: int
    failures: tuple[Seen, ...]
    hints: tuple[HintUse, ...]
    asked: int
