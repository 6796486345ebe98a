"""The points of a verdict as they count for a class: with what being late costs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median

from grader.classes.folder.types import LedgerEntry
from grader.classes.late import Late, lateness
from grader.show.screen import amount
from grader.types.course import Assignment
from grader.types.report import Report


@dataclass(frozen=True)
class Counted:
    """`earned` of `most` points and a `bonus`; being `late` costs a share of both.

    If the assignment has no core stage, its bonus stages are what counts.
    """

    earned: float = 0.0
    most: float = 0.0
    bonus: float = 0.0
    late: Late | None = None

    @property
    def score(self) -> float:
        """The points that are left."""
        return self._left(self.earned)

    @property
    def bonus_left(self) -> float:
        """The bonus points that are left."""
        return self._left(self.bonus)

    @property
    def penalty(self) -> float:
        """The points that being late costs, of the bonus too."""
        return self.earned + self.bonus - self.score - self.bonus_left

    def _left(self, points: float) -> float:
        return points - (self.late.penalty(points) if self.late else 0.0)


def counted(report: Report | None, late: Late | None = None) -> Counted:
    """The points of a report, all 0 without one."""
    if report is None:
        return Counted(late=late)
    if report.stages and all(stage.bonus for stage in report.stages):
        return Counted(report.bonus, sum(stage.max_score for stage in report.stages), 0.0, late)
    return Counted(report.score, report.max_score, report.bonus, late)


def all_points(entry: LedgerEntry) -> float:
    """The points of a verdict, bonus points too."""
    return 0 if entry.report is None else entry.report.score + entry.report.bonus


def spread(points: Sequence[float]) -> str:
    """How the points of a class are spread."""
    middle = f"median {amount(median(points))}, mean {amount(mean(points))}"
    return f"{middle}, from {amount(min(points))} to {amount(max(points))}"


def late_of(assignment: Assignment, entry: LedgerEntry) -> Late | None:
    """How late a student's submission is; None if it is in time or that is unknown."""
    return lateness(assignment, [entry.student], entry.record.submitted)
