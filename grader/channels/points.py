"""Points for a learning platform to import, in the table that it exported. Pure."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.channels.scores import login_key
from grader.types.errors import KitError


@dataclass(frozen=True)
class PointsImport:
    """The rows to import: what names the student, and the one `column` of an assignment.

    `given` counts the cells filled in. `without_score` and `excused` (or not assigned, or locked)
    name the students whose cell is unchanged; `without_student` lists logins with a score but no
    row.
    """

    rows: tuple[tuple[str, ...], ...]
    column: str
    points_possible: str
    given: int
    without_score: tuple[str, ...]
    excused: tuple[str, ...]
    without_student: tuple[str, ...]


def numbered(by_login: Mapping[str, object], logins: Sequence[str]) -> dict[str, str]:
    """The names in the scores that are no logins but end in a platform's student number, by number.

    `grade class` uses such names for files downloaded from Canvas or Moodle: lovelaceada_123. A
    number that several names end in is left out: nobody may get another one's points.
    """
    known = set(map(login_key, logins))
    matches = [(name, re.fullmatch(r".*_(\d+)", name)) for name in by_login if name not in known]
    found = [(match[1], name) for name, match in matches if match]
    count = Counter(number for number, _ in found)
    return {number: name for number, name in found if count[number] == 1}


def folded(scores: Mapping[str, float]) -> dict[str, tuple[str, float]]:
    """The scores by login in lower case, because platforms ignore case."""
    return {login_key(login): (login, score) for login, score in scores.items()}


def named_column(titles: Mapping[str, str], assignment: str, platform: str, advice: str) -> str:
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
