"""Reads scores by login from a CSV table: nbgrader's export, or any with the same columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from grader.classes.folder.csv_files import parse_table
from grader.classes.folder.tables import cell_text
from grader.types.errors import KitError

# The columns of `nbgrader export`, which quotes nothing: a comma in a name shifts those after it.
_EXPORT = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)


@dataclass(frozen=True)
class Scores:
    """Scores of one assignment by login; a student without a submission has none.

    No two logins differ only by case or by spaces around them: platforms ignore these, so such
    logins are `unclear` and have no score.
    """

    by_login: Mapping[str, float]
    max_score: float | None
    unclear: tuple[str, ...] = ()


def parse_scores(text: str, assignment: str | None, place: str) -> Scores:
    """The scores of one assignment from a table with the columns student_id and score.

    nbgrader's export is such a table. It may hold several assignments; `assignment` names one. It
    has 0 for a student without a submission, who gets no score here. An empty score is none: `grade
    class` writes it if the grader itself failed. Raises KitError.
    """
    rows, _ = parse_table(text, place)
    header = [name.strip() for name in rows[0]] if rows else []
    if "student_id" not in header or "score" not in header:
        raise KitError(f"{place}: has no columns 'student_id' and 'score' in its first row")
    records = [(row.line, _record(row, header)) for row in rows[1:]]
    names = sorted({record.get("assignment", "") for _, record in records})
    if assignment is None and len(names) > 1:
        raise KitError(
            f"{place}: has several assignments: name one with --from: {', '.join(names)}"
        )
    if assignment is not None and assignment not in names:
        known = ", ".join(filter(None, names))
        there = f", only {known}" if known else ": remove --from"
        raise KitError(f"{place}: has no assignment '{assignment}'{there}")
    found: dict[str, float] = {}
    seen: set[str] = set()
    max_score: float | None = None
    for number, record in records:
        if assignment is not None and record.get("assignment") != assignment:
            continue
        login = cell_text(record["student_id"])
        if login in seen:
            raise KitError(f"{place}:{number}: '{login}' is there twice")
        seen.add(login)
        if not record["score"].strip():
            continue
        score = _number(record["score"], f"{place}:{number}")
        if score == 0 and record.get("timestamp") == "":
            continue
        found[login] = score
        if record.get("max_score"):
            max_score = _number(record["max_score"], f"{place}:{number}")
    count = Counter(map(login_key, found))
    unclear = tuple(login for login in found if count[login_key(login)] > 1)
    clear = {login.strip(): score for login, score in found.items() if login not in unclear}
    return Scores(clear, max_score, unclear)


def login_key(login: str) -> str:
    """The login as platforms compare it: in any case, without spaces around it."""
    return login.strip().casefold()


def _record(row: list[str], header: list[str]) -> dict[str, str]:
    """A row by its column names."""
    if tuple(header) == _EXPORT and len(row) > len(header):
        row = [*row[:4], "", "", "", *row[-4:]]  # names and addresses are not needed here
    return dict(zip(header, [*row, *[""] * (len(header) - len(row))], strict=False))


def _number(text: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise KitError(f"{place}: {text!r} is not a score")
    return value
