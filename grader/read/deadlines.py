"""Reads an assignment's deadline, extensions and late rule from its table in course.toml. Pure.

All times become UTC: Python compares two times of one zone by their clocks, which in autumn show
one hour twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import MAXYEAR, MINYEAR, date, datetime, time, timedelta, timezone, tzinfo
from typing import Any

from grader.types.course import LateRule
from grader.types.errors import CourseError, close_to

KEYS = frozenset({"due", "extensions", "late"})
_RULES = ("per_day", "cap", "grace_minutes")
_LONGEST_GRACE = 60 * 24 * 365  # minutes


def time_zone(name: str, place: str) -> tzinfo | None:
    """The time zone of that name, such as "Europe/Berlin"; None for "". Raises CourseError."""
    if not name:
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones  # most name none

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = available_timezones()
        advice = close_to(name, known) if known else ": type `pip install tzdata`"
        raise CourseError(f"{place}: 'timezone': there is no {name!r}{advice}") from None


def read_due(table: Mapping[str, Any], zone: tzinfo | None, place: str) -> datetime | None:
    """The deadline in UTC; None without one. Raises CourseError."""
    return _moment(table["due"], zone, f"{place}: 'due'") if "due" in table else None


def read_extensions(
    table: Mapping[str, Any], due: datetime | None, zone: tzinfo | None, place: str
) -> dict[str, datetime]:
    """The later deadlines in UTC by student. Raises CourseError."""
    found = table.get("extensions", {})
    if not isinstance(found, dict):
        raise CourseError(
            f"{place}: 'extensions' must be a table, such as {{ ada = 2026-11-02T23:59:00 }}"
        )
    extensions: dict[str, datetime] = {}
    for student, value in found.items():
        here = f"{place}: extensions: '{student}'"
        extensions[student] = _moment(value, zone, here)
        if due is not None and extensions[student] < due:
            raise CourseError(f"{here}: is earlier than 'due'")
    return extensions


def read_late_rule(table: Mapping[str, Any], place: str) -> LateRule | None:
    """What being late costs; None without a rule. Raises CourseError."""
    rule = table.get("late")
    if rule is None:
        return None
    here = f"{place}: late"
    if not isinstance(rule, dict):
        raise CourseError(f"{here}: must be a table, such as {{ per_day = 0.1, cap = 0.5 }}")
    for key in rule:
        if key not in _RULES:
            raise CourseError(f"{here}: unknown key '{key}'{close_to(key, _RULES)}")
    if "per_day" not in rule:
        raise CourseError(f"{here}: 'per_day' is missing")
    for key, most in (("per_day", 1), ("cap", 1), ("grace_minutes", _LONGEST_GRACE)):
        value = rule.get(key, 0)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= most:
            raise CourseError(f"{here}: '{key}' must be from 0 to {most}, not {value!r}")
    return LateRule(**rule)


def _moment(value: Any, zone: tzinfo | None, place: str) -> datetime:
    """A date and time of TOML, in its own time zone or the course's. Raises CourseError."""
    if not isinstance(value, datetime):
        shown = value.isoformat() if isinstance(value, (date, time)) else repr(value)
        raise CourseError(
            f"{place}: must be a date and a time without quotes, such as 2026-10-30T23:59:00, "
            f"not {shown}"
        )
    if not MINYEAR < value.year < MAXYEAR:
        raise CourseError(f"{place}: the year must be from {MINYEAR + 1} to {MAXYEAR - 1}")
    if value.tzinfo is not None:
        return value.astimezone(timezone.utc)
    if zone is None:
        raise CourseError(
            f'{place}: has no time zone: add timezone = "Europe/Berlin", or yours, at the top'
        )
    moment = in_utc(value, zone)
    if moment.astimezone(zone).replace(tzinfo=None, fold=0) != value:
        later = (moment + timedelta(hours=1)).astimezone(zone)
        raise CourseError(
            f"{place}: the clocks in {zone} skip {value:%H:%M} on that day: write "
            f"{later:%Y-%m-%dT%H:%M:%S}"
        )
    return moment


def in_utc(clock: datetime, zone: tzinfo, fold: int = 1) -> datetime:
    """What the clocks of a time zone show, in UTC; of the hour that autumn has twice, the second.

    With `fold` 0 it is the first. For an hour that spring skips, `fold` 1 is the earlier.
    """
    return clock.replace(tzinfo=zone, fold=fold).astimezone(timezone.utc)
