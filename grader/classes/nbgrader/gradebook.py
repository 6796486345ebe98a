"""Reads and writes nbgrader's gradebook directly: a whole class in one transaction.

The tables are those of nbgrader 0.9 (its api.py). Its own classes would commit once for each cell.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from grader.classes.nbgrader.types import CellVerdict, ReleasedCell
from grader.types.errors import KitError, close_to
from grader.types.seed import fresh_seed

FILE = "gradebook.db"
_TEXT = (str,)
_BUSY_SECONDS = 30.0  # formgrader may be writing
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - an extension is stored as a time since then


@dataclass(frozen=True)
class ReleasedNotebook:
    """A notebook of an assignment as it was released, with its cells in order."""

    name: str
    cells: tuple[ReleasedCell, ...]


@dataclass(frozen=True)
class GradebookEntry:
    """One student's verdict for the gradebook; `timestamp` is the time of submission, in UTC.

    `penalty` is how many points being late costs, None for none.
    """

    student: str
    timestamp: datetime | None
    cells: tuple[CellVerdict, ...]
    penalty: float | None = None


def read_released(root: Path, assignment: str) -> list[ReleasedNotebook]:
    """The notebooks of an assignment. Raises KitError if the gradebook does not have it."""
    with _opened(root) as db:
        rows = _rows(
            db,
            (_TEXT, _TEXT),
            "SELECT n.id, n.name FROM notebook n JOIN assignment a ON n.assignment_id = a.id "
            "WHERE a.name = ? ORDER BY n.name",
            assignment,
        )
        if not rows:
            known = [name for (name,) in _rows(db, (_TEXT,), "SELECT name FROM assignment")]
            advice = f": type `nbgrader generate_assignment {assignment}` first"
            close = close_to(assignment, known)
            raise KitError(f"{root / FILE}: has no assignment '{assignment}'{close or advice}")
        return [ReleasedNotebook(name, tuple(_cells(db, number))) for number, name in rows]


def read_deadlines(root: Path, assignment: str) -> dict[str | None, datetime]:
    """The deadlines in UTC, by student with an extension; the general one has the key None."""
    with _opened(root) as db:
        dues = "SELECT duedate FROM assignment WHERE name = ? AND duedate IS NOT NULL"
        found = _rows(db, (_TEXT,), dues, assignment)
        if not found:
            return {}
        due = datetime.fromisoformat(found[0][0]).replace(tzinfo=None)
        deadlines: dict[str | None, datetime] = {None: due}
        for student, extension in _rows(
            db,
            (_TEXT, _TEXT),
            "SELECT s.student_id, s.extension FROM submitted_assignment s "
            "JOIN assignment a ON s.assignment_id = a.id "
            "WHERE a.name = ? AND s.extension IS NOT NULL",
            assignment,
        ):
            more = datetime.fromisoformat(extension).replace(tzinfo=None) - _EPOCH
            deadlines[student] = due + more
        return deadlines


def keep_seed(root: Path, assignment: str, wanted: int | None) -> int:
    """The seed for this class, now and in every later run.

    The gradebook stores it in a table of its own: a random one at first, later the last `wanted`.
    Raises KitError.
    """
    with _opened(root) as db, db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("CREATE TABLE IF NOT EXISTS grade_seed (assignment TEXT PRIMARY KEY, seed INT)")
        row = db.execute("SELECT seed FROM grade_seed WHERE assignment = ?", (assignment,))
        kept = row.fetchone()
        if wanted is None:
            wanted = fresh_seed() if kept is None else int(kept[0])
        db.execute("INSERT OR REPLACE INTO grade_seed VALUES (?, ?)", (assignment, wanted))
    return wanted


def write_entries(
    root: Path, assignment: str, notebook: str, entries: Iterable[GradebookEntry]
) -> None:
    """Write all verdicts or, if that fails, none. Raises KitError.

    Points and comments set by hand stay; a cell with such points is marked for manual grading.
    """
    with _opened(root) as db, db:
        db.execute("BEGIN IMMEDIATE")
        assignments = _rows(db, (_TEXT,), "SELECT id FROM assignment WHERE name = ?", assignment)
        assignment_id = assignments[0][0]
        notebooks = _rows(
            db,
            (_TEXT, _TEXT),
            "SELECT id, name FROM notebook WHERE assignment_id = ?",
            assignment_id,
        )
        cells = {number: _base_cells(db, number) for number, _ in notebooks}
        graded = next(number for number, name in notebooks if name == notebook)
        for entry in entries:
            _write_entry(db, assignment_id, cells, graded, entry)


def _write_entry(
    db: sqlite3.Connection,
    assignment_id: str,
    cells: dict[str, dict[tuple[str, str], str]],
    graded: str,
    entry: GradebookEntry,
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
                (*[verdict.points] * 2, own, known[verdict.grade_id, "GradeCell"]),
            )
            db.execute(
                "UPDATE comment SET auto_comment = ? WHERE notebook_id = ? AND cell_id = ?",
                (verdict.comment, own, known[verdict.answer_id, "SolutionCell"]),
            )


def _find_or_add(db: sqlite3.Connection, table: str, **keys: str) -> str:
    """The id of the row with these keys; adds the row if there is none."""
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
    for name, kind, locked, source, checksum in _rows(
        db,
        (_TEXT, _TEXT, (int,), _TEXT, (str, type(None))),
        "SELECT name, cell_type, coalesce(locked, 0), coalesce(source, ''), checksum "
        "FROM source_cell WHERE notebook_id = ? ORDER BY rowid",
        notebook,
    ):
        grading = kinds.get((name, "GradeCell"))
        points = None
        if grading is not None:
            worth = "SELECT max_score FROM grade_cells WHERE id = ?"
            points = _rows(db, ((int, float),), worth, grading)[0][0]
        solution = (name, "SolutionCell") in kinds
        yield ReleasedCell(name, kind, source, bool(locked), checksum, solution, points)


def _base_cells(db: sqlite3.Connection, notebook: str) -> dict[tuple[str, str], str]:
    cells = "SELECT name, type, id FROM base_cell WHERE notebook_id = ?"
    rows = _rows(db, (_TEXT, _TEXT, _TEXT), cells, notebook)
    return {(name, kind): number for name, kind, number in rows}


def _rows(
    db: sqlite3.Connection, kinds: Sequence[tuple[type, ...]], sql: str, *values: str
) -> list[tuple[Any, ...]]:
    """The rows found. Checks each value's type, because SQLite stores any type in any column."""
    text = [value.encode(errors="replace").decode() for value in values]  # one may have been typed
    rows: list[tuple[Any, ...]] = db.execute(sql, text).fetchall()
    for row in rows:
        for value, kind in zip(row, kinds, strict=True):
            if not isinstance(value, kind):
                raise TypeError(f"a value that nbgrader does not write: {value!r:.60}")
    return rows


@contextmanager
def _opened(root: Path) -> Iterator[sqlite3.Connection]:
    """Open the gradebook. Raises KitError if it is missing or damaged."""
    file = root / FILE
    if not file.is_file():
        raise KitError(
            f"{file}: does not exist: is {root} the nbgrader course, and did you type "
            "`nbgrader generate_assignment`?"
        )
    try:
        with closing(sqlite3.connect(file, timeout=_BUSY_SECONDS)) as db:
            db.isolation_level = None
            yield db
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter from a damaged table
        raise KitError(f"{file}: {error}; nothing was written") from None
    except (LookupError, TypeError, ValueError, OverflowError, StopIteration) as error:
        raise KitError(f"{file}: is damaged: {error!r}; nothing was written") from None
