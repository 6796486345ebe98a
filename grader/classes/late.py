"""How late a submission is, and what that costs. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone

from grader.show.screen import amount, count
from grader.types.course import Assignment, LateRule

_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60


@dataclass(frozen=True)
class Late:
    """A submission `seconds` after `due`, which costs a `share` of the points that it earned."""

    seconds: float
    share: float
    due: datetime

    def penalty(self, points: float) -> float:
        """How many of these points it costs, to two decimals."""
        return round(self.share * points, 2)

    @property
    def span(self) -> str:
        """How late it is: the two largest units, such as "1 day 3 hours"."""
        left = max(int(self.seconds), 1)
        parts = []
        for size, unit in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute"), (1, "second")):
            number, left = divmod(left, size)
            if number:
                parts.append(count(number, unit))
        return " ".join(parts[:2])

    @property
    def words(self) -> str:
        """How late it is, and what that costs."""
        cost = f"costs {amount(100 * self.share)}% of its points" if self.share else "costs nothing"
        return f"late by {self.span}, which {cost}"


def lateness(
    assignment: Assignment,
    names: Iterable[str],
    submitted: datetime | None,
    due: datetime | None = None,
) -> Late | None:
    """How late a submission is; None if it is in time, or if its time or deadline is unknown.

    `names` are what the student is called, in any case of letters, and `due` is the deadline that
    another program holds, instead of the assignment's own; an extension in course.toml counts if it
    is later. All times have a time zone.
    """
    own = {name.casefold() for name in names}
    extended = [until for name, until in assignment.extensions.items() if name.casefold() in own]
    first = due or assignment.due
    if submitted is None or first is None:
        return None
    until = max(moment.astimezone(timezone.utc) for moment in (first, *extended))
    seconds = (submitted.astimezone(timezone.utc) - until).total_seconds()
    return Late(seconds, _share(assignment.late, seconds), until) if seconds > 0 else None


def zoned(moment: datetime | None) -> datetime | None:
    """A time of nbgrader's, which has no zone, with the one that it means."""
    return moment and moment.replace(tzinfo=timezone.utc)


def _share(rule: LateRule | None, seconds: float) -> float:
    """The share that being late costs: a day is 24 hours, also when the clocks change."""
    if rule is None or seconds <= rule.grace_minutes * _MINUTE:
        return 0.0
    return min(rule.per_day * math.ceil(seconds / _DAY), rule.cap)
