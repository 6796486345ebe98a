"""Fills scores into the table that Canvas exported from its gradebook, for re-import. Pure.

lib/gradebook_importer.rb of instructure/canvas-lms defines what Canvas reads: columns about the
student up to Section, then assignments; a row of points possible, and maybe one that says which
assignments are posted manually. A blank cell, or a student missing from the table, changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from grader.channels.points import PointsImport, folded, named_column, numbered
from grader.channels.scores import login_key
from grader.show.screen import amount
from grader.types.errors import KitError

_LOGIN, _LAST = "SIS Login ID", "Section"
_POINTS = "Points Possible"
_READ_ONLY = re.compile(r"read\s+only", re.IGNORECASE)
_MANUAL = re.compile(r"\s*(Muted|Manual Posting.*)?\s*", re.IGNORECASE)
_WITH_ID = re.compile(r"(.*?)\s*\((\d+)\)")
_EXCUSED, _NOT_ASSIGNED = "EX", "N/A"


def canvas_import(
    roster: Sequence[Sequence[str]], scores: Mapping[str, float], assignment: str
) -> PointsImport:
    """Fill each login's score into the column of `assignment` in the exported `roster`.

    A name that is not a login may end in the student's ID, as in files downloaded from Canvas.
    `assignment` is the column's header, with or without the number in brackets. The result has no
    other assignment, so the import cannot undo changes made since the export. Raises KitError for a
    table that is not from Canvas, and if no column or several columns match.
    """
    header = [cell.removeprefix("\ufeff") for cell in roster[0]] if roster else []
    if _LOGIN not in header or _LAST not in header or "ID" not in header:
        raise KitError(
            f"the roster: is not a gradebook exported from Canvas: its first row lacks 'ID', "
            f"'{_LOGIN}' or '{_LAST}'"
        )
    width, login = header.index(_LAST) + 1, header.index(_LOGIN)
    rows = [[*row, *[""] * (len(header) - len(row))] for row in roster[1:]]
    about = [row for row in rows if _is_about(row)]
    chosen = _column(header, width, about, assignment)
    by_login = folded(scores)
    by_number = numbered(by_login, [row[login] for row in rows])
    number = header.index("ID")
    seen: set[str] = set()
    done: list[tuple[str, ...]] = [(*header[:width], header[chosen])]
    without_score, excused = [], []
    for row in rows:
        cell = row[chosen]
        if row not in about:
            key = login_key(row[login])
            if key not in by_login:
                key = by_number.get(row[number].strip(), key)
            if key in seen:
                raise KitError(f"the roster: has the login '{row[login]}' twice")
            if key and key in by_login:
                seen.add(key)
            shown = f"{row[0]} ({row[login] or 'no login'})"
            if cell.strip().upper() in (_EXCUSED, _NOT_ASSIGNED):
                excused.append(shown)
            elif key in seen:
                cell = amount(by_login[key][1])
            else:
                without_score.append(shown)
        if any(value.strip() for value in (*row[:width], cell)):
            done.append((*row[:width], cell))
    students = len(rows) - len(about)
    return PointsImport(
        rows=tuple(done),
        column=header[chosen],
        points_possible=next((r[chosen].strip() for r in about if _POINTS in r[0]), ""),
        given=students - len(without_score) - len(excused),
        without_score=tuple(without_score),
        excused=tuple(excused),
        without_student=tuple(name for key, (name, _) in by_login.items() if key not in seen),
    )


def _is_about(row: Sequence[str]) -> bool:
    """Whether a row is about the assignments, not about a student."""
    return _POINTS in row[0] or all(_MANUAL.fullmatch(cell) for cell in row)


def _column(
    header: Sequence[str], width: int, about: Sequence[Sequence[str]], assignment: str
) -> int:
    """The index of the assignment's column. Raises KitError."""
    points = next((row for row in about if _POINTS in row[0]), ())
    places = {
        name: place
        for place, name in enumerate(header)
        if place >= width and _WITH_ID.fullmatch(name)
        if not (points and _READ_ONLY.search(points[place]))
    }
    titles = {name: name[: name.rindex("(")].rstrip() for name in places}
    advice = "create the assignment in Canvas and export again"
    return places[named_column(titles, assignment, "Canvas", advice)]
