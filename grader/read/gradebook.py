"""nbgrader's gradebook, read and written directly: all of a class in one transaction.

The tables are those that nbgrader 0.9 makes (its api.py); whoever fills them through nbgrader's own
classes commits once a cell.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from grader.types.errors import KitError
from grader.types.gradebook import CellVerdict, ReleasedCell

FILE = "gradebook.db"
_BUSY_SECONDS = 30.0  # formgrader may be writing


@dataclass(frozen=True)
class ReleasedNotebook:
    """A notebook of an assignment as it was handed out, its cells in their order."""

    assignment: str
    name: str
    cells: tuple[ReleasedCell, ...]


@dataclass(frozen=True)
class Entry:
    """One student's verdict as the gradebook takes it; `timestamp` is when it was handed in, UTC.

    `penalty` is what it loses for being late, None for nothing.
    """

    student: str
    timestamp: datetime | None
    cells: tuple[CellVerdict, ...]
    penalty: float | None = None


def read_released(root: Path, assignment: str) -> list[ReleasedNotebook]:
    """The notebooks of an assignment. Raises KitError if the gradebook does not know it."""
    with _opened(root) as db:
        rows = db.execute(
            "SELECT n.id, n.name FROM notebook n JOIN assignment a ON n.assignment_id = a.id "
            "WHERE a.name = ? ORDER BY n.name",
            (assignment,),
        ).fetchall()
        if not rows:
            raise KitError(
                f"{root / FILE}: knows no assignment '{assignment}': type "
                f"`nbgrader generate_assignment {assignment}` first"
            )
        return [
            ReleasedNotebook(assignment, name, tuple(_cells(db, number))) for number, name in rows
        ]


def read_deadlines(root: Path, assignment: str) -> dict[str | None, datetime]:
    """When an assignment was due, UTC: for None in general, for a student with an extension so."""
    with _opened(root) as db:
        row = db.execute("SELECT duedate FROM assignment WHERE name = ?", (assignment,)).fetchone()
        if row is None or row[0] is None:
            return {}
        due = _moment(row[0])
        deadlines: dict[str | None, datetime] = {None: due}
        for student, extension in db.execute(
            "SELECT s.student_id, s.extension FROM submitted_assignment s "
            "JOIN assignment a ON s.assignment_id = a.id WHERE a.name = ?",
            (assignment,),
        ):
            if extension is not None:  # SQLAlchemy keeps an interval as a time since 1970
                deadlines[student] = due + (_moment(extension) - datetime(1970, 1, 1))  # noqa: DTZ001
        return deadlines


def write_entries(root: Path, assignment: str, notebook: str, entries: Iterable[Entry]) -> None:
    """Write all verdicts or, where that fails, none. Raises KitError.

    Points and comments given by hand stay; a cell that has such points is marked to be looked at.
    """
    with _opened(root) as db, db:
        db.execute("BEGIN IMMEDIATE")
        (assignment_id,) = db.execute(
            "SELECT id FROM assignment WHERE name = ?", (assignment,)
        ).fetchone()
        notebooks = db.execute(
            "SELECT id, name FROM notebook WHERE assignment_id = ?", (assignment_id,)
        ).fetchall()
        cells = {number: _base_cells(db, number) for number, _ in notebooks}
        graded = next(number for number, name in notebooks if name == notebook)
        for entry in entries:
            _write_entry(db, assignment_id, cells, graded, entry)


def _write_entry(
    db: sqlite3.Connection,
    assignment_id: str,
    cells: dict[str, dict[tuple[str, str], str]],
    graded: str,
    entry: Entry,
) -> None:
    db.execute("INSERT OR IGNORE INTO student (id) VALUES (?)", (entry.student,))
    submission = _find_or_add(
        db, "submitted_assignment", assignment_id=assignment_id, student_id=entry.student
    )
    if entry.timestamp is not None:
        db.execute(
            "UPDATE submitted_assignment SET timestamp = ? WHERE id = ?",
            (entry.timestamp.isoformat(" ", "microseconds"), submission),
        )
    for number, known in cells.items():
        own = _find_or_add(db, "submitted_notebook", assignment_id=submission, notebook_id=number)
        for (_, kind), cell in known.items():
            if kind != "SolutionCell":
                _find_or_add(db, "grade", notebook_id=own, cell_id=cell)
            if kind != "GradeCell":
                _find_or_add(db, "comment", notebook_id=own, cell_id=cell)
        if number != graded:
            continue
        db.execute(
            "UPDATE submitted_notebook SET late_submission_penalty = ? WHERE id = ?",
            (entry.penalty, own),
        )
        for verdict in entry.cells:
            db.execute(
                "UPDATE grade SET auto_score = ?, "
                "needs_manual_grade = (? IS NULL OR manual_score IS NOT NULL) "
                "WHERE notebook_id = ? AND cell_id = ?",
                (verdict.points, verdict.points, own, known[verdict.grade_id, "GradeCell"]),
            )
            db.execute(
                "UPDATE comment SET auto_comment = ? WHERE notebook_id = ? AND cell_id = ?",
                (verdict.comment, own, known[verdict.answer_id, "SolutionCell"]),
            )


def _find_or_add(db: sqlite3.Connection, table: str, **keys: str) -> str:
    """The id of the row with these keys, which is made if there is none."""
    where = " AND ".join(f"{name} = ?" for name in keys)
    row = db.execute(f"SELECT id FROM {table} WHERE {where}", tuple(keys.values())).fetchone()
    if row is not None:
        return str(row[0])
    values = {"id": uuid4().hex, **keys, **_DEFAULTS.get(table, {})}
    names, marks = ", ".join(values), ", ".join("?" * len(values))
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(values.values()))
    return values["id"]


_DEFAULTS = {"grade": {"needs_manual_grade": "1"}, "submitted_notebook": {"flagged": "0"}}


def _cells(db: sqlite3.Connection, notebook: str) -> Iterator[ReleasedCell]:
    kinds = _base_cells(db, notebook)
    for name, kind, locked, source, checksum in db.execute(
        "SELECT name, cell_type, locked, source, checksum FROM source_cell "
        "WHERE notebook_id = ? ORDER BY rowid",
        (notebook,),
    ):
        grading = kinds.get((name, "GradeCell"))
        points = None
        if grading is not None:
            (points,) = db.execute(
                "SELECT max_score FROM grade_cells WHERE id = ?", (grading,)
            ).fetchone()
        solution = (name, "SolutionCell") in kinds
        yield ReleasedCell(name, kind, source or "", bool(locked), checksum, solution, points)


def _base_cells(db: sqlite3.Connection, notebook: str) -> dict[tuple[str, str], str]:
    rows = db.execute("SELECT name, type, id FROM base_cell WHERE notebook_id = ?", (notebook,))
    return {(name, kind): number for name, kind, number in rows}


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@contextmanager
def _opened(root: Path) -> Iterator[sqlite3.Connection]:
    """The gradebook, which must be there. KitError for whatever is wrong with it."""
    file = root / FILE
    if not file.is_file():
        raise KitError(
            f"{file}: is not there: is {root} the nbgrader course, and did you type "
            "`nbgrader generate_assignment`?"
        )
    try:
        with closing(sqlite3.connect(file, timeout=_BUSY_SECONDS)) as db:
            db.isolation_level = None
            yield db
    except sqlite3.Error as error:
        raise KitError(f"{file}: {error}; nothing was written") from None
