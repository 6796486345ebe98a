"""Fills scores into the tables that Canvas, Moodle and Blackboard exported, for re-import. Pure.

Canvas reads what lib/gradebook_importer.rb of instructure/canvas-lms defines: columns about the
student up to Section, then assignments; a row of points possible, and maybe one that says which
assignments are posted manually. Moodle's offline grading worksheet belongs to one assignment;
importgradeslib.php of its plugin assignfeedback_offline reads the columns Identifier ("Participant
1234567"), Grade and Last modified (grade), in the language of the user. Blackboard's gradebook
("Work offline") names a student by the Username, and a column by the number behind its title:
"Heads [Total Pts: 5 Score] |664617". A blank cell, or a student missing from the table, changes
nothing.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.channels.scores import login_key
from grader.show.screen import amount
from grader.types.errors import KitError

_LOGIN, _NUMBER, _LAST = "SIS Login ID", "ID", "Section"
_POINTS = "Points Possible"
_READ_ONLY = re.compile(r"read\s+only", re.IGNORECASE)
_MANUAL = re.compile(r"\s*(Muted|Manual Posting.*)?\s*", re.IGNORECASE)
_CANVAS_COLUMN = re.compile(r"(?P<title>.*?)\s*\(\d+\)")
_EXCUSED = ("EX", "N/A")  # the latter is not assigned
_IDENTIFIER, _GRADE, _MODIFIED = "Identifier", "Grade", "Last modified (grade)"
_USERNAME = "Username"
_BLACKBOARD_COLUMN = re.compile(r"(?P<title>.*?)\s*\[(?P<about>[^\[\]]*)\]\s*\|\s*\S+")
Row = Mapping[str, str]


@dataclass(frozen=True)
class PointsImport:
    """The rows to import: what names the student, and the one `column` of an assignment.

    `given` counts the cells filled in. `without_score` and `locked` (or excused, or not assigned)
    name the students whose cell is unchanged; `without_student` lists logins with a score but no
    row.
    """

    rows: tuple[tuple[str, ...], ...]
    column: str
    points_possible: str
    given: int
    without_score: tuple[str, ...]
    locked: tuple[str, ...]
    without_student: tuple[str, ...]


@dataclass(frozen=True)
class _Student:
    """A row's student: the name to show, the names that a score may have, and a lock."""

    shown: str
    names: tuple[str, ...]
    is_locked: bool = False


def canvas_import(
    roster: Sequence[Sequence[str]], scores: Mapping[str, float], assignment: str
) -> PointsImport:
    """Fill in the column of `assignment`, its header with or without the number in brackets.

    A score's name is the student's login, or ends in the student's ID, as in files downloaded from
    Canvas. The result has all students and no other assignment, so the import cannot undo changes
    made since the export. Raises KitError for another table, and if no column or several match.
    """
    header, rows = _table(roster, (_LOGIN, _NUMBER, _LAST), "a gradebook exported from Canvas")
    about = [row for row in rows if _is_about(row)]
    points = next((row for row in about if _POINTS in row[header[0]]), {})
    last = header.index(_LAST) + 1
    titles = {
        name: found["title"]
        for name in header[last:]
        if (found := _CANVAS_COLUMN.fullmatch(name)) and not _READ_ONLY.search(points.get(name, ""))
    }
    advice = "create the assignment in Canvas and export again"
    column = _named_column(titles, assignment, "Canvas", advice)
    by_number = _numbered(scores, [row[_LOGIN] for row in rows])

    def student(row: Row) -> _Student | None:
        if row in about:
            return None
        names = (row[_LOGIN], by_number.get(row[_NUMBER].strip(), ""))
        shown = f"{row[header[0]]} ({row[_LOGIN] or 'no login'})"
        return _Student(shown, names, row[column].strip().upper() in _EXCUSED)

    kept, possible = (*header[:last], column), points.get(column, "")
    rows = [row for row in rows if any(row[name].strip() for name in kept)]
    return _filled(rows, scores, kept, column, possible, student, keeps_all=True)


def _is_about(row: Row) -> bool:
    """Whether a row of Canvas is about the assignments, not about a student."""
    first, *_ = row.values()
    return _POINTS in first or all(map(_MANUAL.fullmatch, row.values()))


def moodle_import(
    roster: Sequence[Sequence[str]], scores: Mapping[str, float], assignment: str = ""
) -> PointsImport:
    """Fill in the grades of Moodle's grading worksheet, whose one `assignment` needs no name.

    A score's name is the student's email address or ID number, or ends in the participant's number,
    as in files downloaded from Moodle. Raises KitError for another table.
    """
    kept = (_IDENTIFIER, _GRADE, _MODIFIED)
    what = "a grading worksheet of a Moodle assignment, downloaded in English"
    header, rows = _table(roster, kept, what)
    own = [(row.get("Email address", ""), row.get("ID number", "")) for row in rows]
    by_number = _numbered(scores, [name for names in own for name in names])
    maximum = next((name for name in header if name.casefold() == "maximum grade"), "")

    def student(row: Row) -> _Student:
        number = row[_IDENTIFIER].rpartition(" ")[2]  # of "Participant 1234567"
        names = (row.get("Email address", ""), row.get("ID number", ""), by_number.get(number, ""))
        shown = f"{row.get('Full name') or 'no name'} ({row[_IDENTIFIER]})"
        return _Student(shown, names, row.get("Grade can be changed", "").strip().lower() == "no")

    possible = next((row[maximum] for row in rows), "") if maximum else ""
    return _filled(rows, scores, kept, _GRADE, possible, student)


def blackboard_import(
    roster: Sequence[Sequence[str]], scores: Mapping[str, float], assignment: str
) -> PointsImport:
    """Fill in the column `assignment`, given with or without the suffix of its title.

    A score's name is the student's Username or Student ID, or ends in the Username, as in files
    downloaded from Blackboard. Raises KitError for another table, and if no column or several
    match.
    """
    what = "a gradebook downloaded from Blackboard (Work offline)"
    header, rows = _table(roster, (_USERNAME,), what)
    columns = {name: found for name in header if (found := _BLACKBOARD_COLUMN.fullmatch(name))}
    titles = {name: found["title"] for name, found in columns.items()}
    advice = "create the column in Blackboard and download again"
    column = _named_column(titles, assignment, "Blackboard", advice)
    points = re.search(r"\d+([.,]\d+)?", columns[column]["about"])
    by_ending = _ending(scores, [row[_USERNAME] for row in rows])

    def student(row: Row) -> _Student:
        full = " ".join(filter(None, (row.get("First Name"), row.get("Last Name"))))
        username = row[_USERNAME]
        names = (username, row.get("Student ID", ""), by_ending.get(login_key(username), ""))
        return _Student(f"{full or 'no name'} ({username})", names)

    return _filled(rows, scores, (_USERNAME, column), column, points[0] if points else "", student)


# --- for all platforms -------------------------------------------------------------------------


def _table(
    roster: Sequence[Sequence[str]], needed: Sequence[str], what: str
) -> tuple[list[str], list[Row]]:
    """The header and the rows by column. Raises KitError if a column is missing, or there twice."""
    header = [cell.strip() for cell in roster[0]] if roster else []
    lacks = [f"'{name}'" for name in needed if name not in header]
    if lacks:
        raise KitError(f"the roster: is not {what}: its first row lacks {', '.join(lacks)}")
    for name in needed:
        if header.count(name) > 1:
            raise KitError(f"the roster: has the column '{name}' twice")
    full = ([*row, *[""] * len(header)] for row in roster[1:] if any(map(str.strip, row)))
    return header, [dict(zip(header, row, strict=False)) for row in full]


def _named_column(titles: Mapping[str, str], assignment: str, platform: str, advice: str) -> str:
    """The column of `assignment`, given as the whole name of the column or as its title.

    `titles` are the titles by name; `advice` is what to do if there are none. Raises KitError if
    no column or several columns match.
    """
    found = [name for name in titles if name == assignment]
    found = found or [name for name, title in titles.items() if title == assignment]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"'{name}'" for name in found)
        raise KitError(f"--assignment {assignment}: {platform} has several: name one of {names}")
    close = difflib.get_close_matches(assignment, titles.values(), n=1)
    known = f"did you mean '{close[0]}'?" if close else f"it has: {', '.join(titles.values())}"
    raise KitError(
        f"--assignment {assignment}: the roster has no such column; {known if titles else advice}"
    )


def _numbered(names: Iterable[str], logins: Iterable[str]) -> dict[str, str]:
    """The names in the scores that are no logins but end in a platform's student number, by number.

    `grade class` uses such names for files downloaded from Canvas or Moodle: lovelaceada_123.
    """
    known = set(map(login_key, logins))
    matches = [(name, re.fullmatch(r".*_(\d+)", name)) for name in names]
    found = {name: match[1] for name, match in matches if match and login_key(name) not in known}
    return _only_ones(found)


def _ending(names: Iterable[str], logins: Iterable[str]) -> dict[str, str]:
    """The names in the scores that end in "_" and a login, by login.

    `grade class` uses such names for files downloaded from Blackboard: Homework 1_alovelace.
    """
    longest = sorted(map(login_key, logins), key=len, reverse=True)  # s_lee before lee
    ends = {
        name: next((login for login in longest if login_key(name).endswith(f"_{login}")), "")
        for name in names
    }
    return _only_ones(ends)


def _only_ones(found: Mapping[str, str]) -> dict[str, str]:
    """The names by their ends. Nobody may get another one's points, so no end is there twice."""
    count = Counter(found.values())
    return {end: name for name, end in found.items() if count[end] == 1}


def _filled(
    rows: Sequence[Row],
    scores: Mapping[str, float],
    kept: Sequence[str],
    column: str,
    possible: str,
    student: Callable[[Row], _Student | None],
    *,
    keeps_all: bool = False,
) -> PointsImport:
    """The `kept` columns of each row with a score, which is filled in. Raises KitError.

    With `keeps_all`, the other rows stay as they are. `student` returns None for a row without a
    student.
    """
    by_login = {login_key(login): login for login in scores}  # platforms ignore case
    seen: set[str] = set()
    done = [tuple(kept)]
    given = 0
    without_score, locked = [], []
    for row in rows:
        one = student(row)
        names = map(login_key, one.names if one else ())
        key = next((name for name in names if name and name in by_login), "")
        if key in seen:
            raise KitError(f"the roster: '{by_login[key]}' is the name of two students")
        if key:
            seen.add(key)
        if one and one.is_locked:
            locked.append(one.shown)
        elif key:
            row = {**row, column: amount(scores[by_login[key]])}
            given += 1
        elif one:
            without_score.append(one.shown)
        if keeps_all or (key and one and not one.is_locked):
            done.append(tuple(row[name] for name in kept))
    return PointsImport(
        rows=tuple(done),
        column=column,
        points_possible=possible.strip(),
        given=given,
        without_score=tuple(without_score),
        locked=tuple(locked),
        without_student=tuple(login for key, login in by_login.items() if key not in seen),
    )
