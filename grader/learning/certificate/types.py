"""What a certificate says, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from grader.learning.pictures.types import Trace


@dataclass(frozen=True)
class Passed:
    """A stage that passes: its points, and how the learner got there. `on` is a date, or ""."""

    slug: str
    title: str
    points: float
    bonus: bool
    attempts: int
    hints: int
    on: str


@dataclass(frozen=True)
class Certificate:
    """A finished course. `name` is the learner's, "" if not given; `shown` is what the code did."""

    course: str
    name: str
    date: str
    score: float
    bonus: float
    stages: tuple[Passed, ...]
    shown: Trace
