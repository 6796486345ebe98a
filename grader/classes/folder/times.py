"""Reads when students submitted, from a table: one's own, nbgrader's export, Moodle's worksheet.

A folder of submissions does not tell that: the times of its files are often those of the download.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date, datetime, timezone, tzinfo
from pathlib import Path

from grader.classes.folder.csv_files import parse_table, read_text
from grader.classes.folder.tables import cell_text
from grader.read.deadlines import in_utc
from grader.types.errors import KitError
from grader.types.text import listed, safe_line

# A column's name, and what a time in it without a zone means: "" for the course's time zone.
_STUDENTS = ("student", "student_id", "identifier")
_TIMES = {"submitted": "", "timestamp": "UTC", "last modified (submission)": ""}
# As Moodle writes times, in English of both kinds.
_MOODLE = tuple(
    f"%A, {day} %Y, %I:%M{seconds} %p" for day in ("%d %B", "%B %d,") for seconds in ("", ":%S")
)
_NAMED = 5  # students to name in one sentence
_NUMBERED = re.compile(r"(?:.*_|Participant )(\d+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Times:
    """When each student submitted, in UTC, by the name or by a platform's number.

    `written` is what the table calls them.
    """

    by_name: Mapping[str, datetime]
    written: Mapping[str, str]

    def of(self, student: str) -> datetime | None:
        """When this student submitted; None if the table does not say it."""
        return next((self.by_name[key] for key in _keys(student) if key in self.by_name), None)

    def others(self, students: Iterable[str]) -> list[str]:
        """A sentence that names the first few students of the table who are none of these."""
        known = {key for student in students for key in _keys(student)}
        names = sorted(name for key, name in self.written.items() if key not in known)
        named = listed(list(map(safe_line, names)), most=_NAMED)
        return [f"The table of times has students who are not here: {named}."] if named else []


def read_times(file: Path, zone: tzinfo | None, assignment: str) -> Times:
    """The times in a CSV file with the columns student and submitted. Raises KitError.

    nbgrader's export and Moodle's grading worksheet will do; of an export of several assignments
    only the rows of `assignment` count. A time is ISO 8601, or as Moodle writes it; without a zone
    it is in `zone`, and nbgrader's in UTC. Of several times of one student the latest counts.
    """
    rows, _ = parse_table(read_text(file), str(file))
    header = [name.strip().lower() for name in rows[0]] if rows else []
    student = next((name for name in _STUDENTS if name in header), None)
    time = next((name for name in _TIMES if name in header), None)
    if student is None or time is None:
        raise KitError(f"{file}: needs the columns 'student' and 'submitted' in its first row")
    there = timezone.utc if _TIMES[time] else zone
    records = [dict(zip(header, map(str.strip, row), strict=False)) for row in rows[1:]]
    names = {record.get("assignment", "") for record in records}
    if len(names) > 1 and assignment not in names:
        raise KitError(f"{file}: has several assignments, and none is '{assignment}'")
    found: dict[str, datetime] = {}
    written: dict[str, str] = {}
    for row, record in zip(rows[1:], records, strict=True):
        name, text = cell_text(record.get(student, "")), record.get(time, "")
        is_other = len(names) > 1 and record.get("assignment") != assignment
        if name and text.strip("-") and not is_other:
            key, moment = next(_keys(name)), _moment(text, there, f"{file}:{row.line}")
            found[key] = max(moment, found.get(key, moment))
            written[key] = name.strip()
    return Times(found, written)


def _keys(student: str) -> Iterator[str]:
    """What a table may call a student: the name in any case, or the platform's number at its end.

    `grade class` calls one of Moodle's students Ada Lovelace_1234567, and its worksheet
    Participant 1234567.
    """
    numbered = _NUMBERED.fullmatch(student)
    if numbered and student.lower().startswith("participant "):
        yield f"_{numbered[1]}"
        return
    yield student.strip().casefold()
    if numbered:
        yield f"_{numbered[1]}"


def _moment(text: str, zone: tzinfo | None, place: str) -> datetime:
    """A time in UTC, the earlier one if the clocks showed it twice. Raises KitError."""
    moment = _read(text)
    if moment is None or not MINYEAR < moment.year < MAXYEAR:
        raise KitError(f"{place}: {text!r} is not a time such as 2026-10-30T23:59:00+01:00")
    if moment.tzinfo is not None:
        return moment.astimezone(timezone.utc)
    if zone is None:
        raise KitError(f"{place}: {text!r} has no time zone: set 'timezone' in course.toml")
    return min(in_utc(moment, zone, fold) for fold in (0, 1))


def _read(text: str) -> datetime | None:
    with suppress(ValueError):
        date.fromisoformat(text)
        return None  # at midnight, when such a day begins, the student was not late yet
    with suppress(ValueError):
        # Python 3.10 reads no Z.
        return datetime.fromisoformat(re.sub(r"[zZ]$|\s+UTC$", "+00:00", text))
    for form in _MOODLE:
        with suppress(ValueError):
            return datetime.strptime(text, form)  # noqa: DTZ007 - it has none
    return None
