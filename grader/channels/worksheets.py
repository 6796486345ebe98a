"""Fills scores into tables that Moodle and Blackboard exported, for re-import. Pure.

Moodle's offline grading worksheet belongs to one assignment; importgradeslib.php of its plugin
assignfeedback_offline reads the columns Identifier ("Participant 1234567"), Grade and Last modified
(grade), in the language of the user. Blackboard's gradebook ("Work offline") names a student by the
Username, and a column by the number behind its title: "Heads [Total Pts: 5 Score] |664617". In both
a student who is missing from the table keeps the old grade.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.channels.points import PointsImport, folded, named_column, numbered
from grader.channels.scores import login_key
from grader.show.screen import amount
from grader.types.errors import KitError

_IDENTIFIER, _GRADE, _MODIFIED = "Identifier", "Grade", "Last modified (grade)"
_USERNAME = "Username"
_COLUMN = re.compile(r"(?P<title>.*?)\s*\[(?P<about>[^\[\]]*)\]\s*\|\s*\S+")
Row = Mapping[str, str]


@dataclass(frozen=True)
class _Student:
    """A row's student: the name to show, the names that a score may have, and a lock."""

    shown: str
    names: tuple[str, ...]
    is_locked: bool = False


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
    by_number = numbered(folded(scores), [name for names in own for name in names])
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
    downloaded from Blackboard. Raises KitError for a table that is not
    from Blackboard, and if no column or several columns match.
    """
    what = "a gradebook downloaded from Blackboard (Work offline)"
    header, rows = _table(roster, (_USERNAME,), what)
    titles = {name: found["title"] for name in header if (found := _COLUMN.fullmatch(name))}
    advice = "create the column in Blackboard and download again"
    column = named_column(titles, assignment, "Blackboard", advice)
    found = _COLUMN.fullmatch(column)
    points = re.search(r"\d+([.,]\d+)?", found["about"]) if found else None
    by_ending = _ending(folded(scores), [login_key(row[_USERNAME]) for row in rows])

    def student(row: Row) -> _Student:
        full = " ".join(filter(None, (row.get("First Name"), row.get("Last Name"))))
        shown = f"{full or 'no name'} ({row[_USERNAME]})"
        username = row[_USERNAME]
        ending = by_ending.get(login_key(username), "")
        return _Student(shown, (username, row.get("Student ID", ""), ending))

    return _filled(rows, scores, (_USERNAME, column), column, points[0] if points else "", student)


def _ending(names: Iterable[str], logins: Sequence[str]) -> dict[str, str]:
    """The names that end in "_" and a login, by login; none if several end in the same one.

    `grade class` uses such names for files downloaded from Blackboard: Homework 1_alovelace.
    """
    longest = sorted(logins, key=len, reverse=True)  # s_lee before lee
    ends = {name: next((x for x in longest if name.endswith(f"_{x}")), "") for name in names}
    count = Counter(ends.values())
    return {login: name for name, login in ends.items() if count[login] == 1}


def _table(
    roster: Sequence[Sequence[str]], needed: Sequence[str], what: str
) -> tuple[list[str], list[Row]]:
    """The header and the rows by column. Raises KitError if a column is missing, or there twice."""
    header = [cell.strip() for cell in roster[0]] if roster else []
    lacks = [f"'{name}'" for name in needed if name not in header]
    if lacks:
        raise KitError(f"the roster: is not {what}: its first row lacks {', '.join(lacks)}")
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise KitError(f"the roster: has the column '{twice[0]}' twice")
    rows = [dict(zip(header, [*row, *[""] * len(header)], strict=False)) for row in roster[1:]]
    return header, [row for row in rows if row[needed[0]].strip()]


def _filled(
    rows: Sequence[Row],
    scores: Mapping[str, float],
    kept: Sequence[str],
    column: str,
    possible: str,
    student: Callable[[Row], _Student],
) -> PointsImport:
    """The `kept` columns of each row with a score, which is filled in. Raises KitError."""
    by_login = folded(scores)
    seen: set[str] = set()
    done = [tuple(kept)]
    without_score, locked = [], []
    for row in rows:
        one = student(row)
        names = map(login_key, one.names)
        key = next((name for name in names if name and name in by_login), "")
        if not key:
            without_score.append(one.shown)
            continue
        if key in seen:
            raise KitError(f"the roster: '{by_login[key][0]}' is the name of two students")
        seen.add(key)
        if one.is_locked:
            locked.append(one.shown)
        else:
            filled = {**row, column: amount(by_login[key][1])}
            done.append(tuple(filled[name] for name in kept))
    return PointsImport(
        rows=tuple(done),
        column=column,
        points_possible=possible.strip(),
        given=len(done) - 1,
        without_score=tuple(without_score),
        excused=tuple(locked),
        without_student=tuple(name for key, (name, _) in by_login.items() if key not in seen),
    )
