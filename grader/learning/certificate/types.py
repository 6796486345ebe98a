"""What a certificate says, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from grader.learning.pictures.types import Trace
from grader.types.course import Stage
from grader.types.progress import StageProgress


@dataclass(frozen=True)
class Certificate:
    """A finished course. `name` is the learner's, "" if not given; `shown` is what the code did.

    `passed` holds each stage that passes, and how the learner got there.
    """

    course: str
    name: str
    date: str
    passed: tuple[tuple[Stage, StageProgress], ...]
    shown: Trace

    def points(self, *, bonus: bool) -> float:
        """The points of the bonus stages, or of the others."""
        return sum(known.score for stage, known in self.passed if stage.bonus is bonus)
