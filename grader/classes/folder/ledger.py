"""The ledger of a class: an SQLite file of every verdict and every submission.

Entries never change, except that a proposed verdict becomes the current one. Each verdict is
committed at once, so a crash loses only the submission that is being graded.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.classes.alone import unusable
from grader.classes.folder.renamed import with_present_slugs
from grader.classes.folder.types import LedgerEntry, SubmissionRecord, Version
from grader.classes.folder.versions import content_of
from grader.read.renamed import with_present_names
from grader.types.course import Course
from grader.types.errors import KitError, writing
from grader.types.report import from_json, to_json
from grader.types.submission import Submission

FILE = "ledger.sqlite"
_FORMAT = 2
_BUSY_SECONDS = 30.0
_RESTORE = ": restore the file from a backup, or grade everything again with another --out"
_UNPACKED_CAP = 512 << 20  # bytes of one unpacked submission; its text is escaped, so it is long
_TABLES = """
CREATE TABLE versions (
    id INTEGER PRIMARY KEY, engine TEXT NOT NULL, stages TEXT NOT NULL, UNIQUE (engine, stages));
CREATE TABLE submissions (content TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE verdicts (
    number INTEGER PRIMARY KEY, student TEXT NOT NULL, content TEXT NOT NULL, notes TEXT NOT NULL,
    version INTEGER NOT NULL REFERENCES versions, seed INTEGER NOT NULL, device TEXT NOT NULL,
    report TEXT, run_notes TEXT NOT NULL, at TEXT NOT NULL, seconds REAL NOT NULL,
    is_lost INTEGER NOT NULL, is_proposed INTEGER NOT NULL, submitted TEXT NOT NULL DEFAULT '');
CREATE INDEX by_student ON verdicts (student, number);
CREATE INDEX by_content ON verdicts (content);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
_SELECT = (
    "SELECT v.number, v.student, v.content, v.notes, w.engine, w.stages, v.seed, v.device, "
    "v.report, v.run_notes, v.at, v.seconds, v.submitted "
    "FROM verdicts v JOIN versions w ON v.version = w.id"
)


_MAYBE = (str, type(None))
# The types of the columns of _SELECT.
_KINDS: Sequence[Any] = (*(int, str, str, str, str, str, int, str, _MAYBE), *(str, str, float, str))


@dataclass(eq=False)
class Ledger:
    """An open ledger. Its methods raise KitError for any SQLite error, such as a full disk.

    Verdicts and submissions come out with the present names of the stages of `course`.
    """

    _file: Path
    _db: sqlite3.Connection
    _course: Course | None = None

    def add(
        self, entry: LedgerEntry, submission: Submission | None, *, proposed: bool = False
    ) -> None:
        """Add a verdict, and its submission unless an identical one is stored already."""
        record, version = entry.record, entry.version
        report = None if entry.report is None else json.dumps(to_json(entry.report))
        run_notes = json.dumps(() if entry.report is None else entry.report.notes)
        stages = json.dumps(version.stages, sort_keys=True)
        with self._transaction() as db:
            if submission is not None:
                kept = (record.content, _packed(submission))
                db.execute("INSERT OR IGNORE INTO submissions VALUES (?, ?)", kept)
            known = (version.engine, stages)
            db.execute("INSERT OR IGNORE INTO versions (engine, stages) VALUES (?, ?)", known)
            db.execute(
                "INSERT INTO verdicts (student, content, notes, version, seed, device, report, "
                "run_notes, at, seconds, is_lost, is_proposed, submitted) SELECT ?, ?, ?, id, ?, "
                "?, ?, ?, ?, ?, ?, ?, ? FROM versions WHERE engine = ? AND stages = ?",
                (
                    *(record.student, record.content, json.dumps(record.notes), entry.seed),
                    *(entry.device, report, run_notes, _text_of(entry.when), entry.seconds),
                    *(entry.is_lost, proposed, _text_of(record.submitted), *known),
                ),
            )

    def students(self) -> list[str]:
        """The students with a current verdict, sorted."""
        sql = "SELECT DISTINCT student FROM verdicts WHERE is_proposed = 0"
        with self._errors():
            return sorted(str(name) for (name,) in self._db.execute(sql))

    def latest(self) -> Iterator[LedgerEntry]:
        """The current verdict of each student, sorted by student."""
        numbers = "SELECT max(number) FROM verdicts WHERE is_proposed = 0 GROUP BY student"
        return self._entries(f"v.number IN ({numbers}) ORDER BY v.student")

    def latest_of(self, student: str, *, proposed: bool = False) -> LedgerEntry | None:
        """The current verdict of a student, or the proposed one."""
        where = f"v.student = ? AND v.is_proposed = {proposed:d} ORDER BY v.number DESC LIMIT 1"
        return next(self._entries(where, student), None)

    def history(self, student: str) -> Iterator[LedgerEntry]:
        """All verdicts of a student that count or once counted, oldest first."""
        where = "v.student = ? AND v.is_proposed = 0 ORDER BY v.number"
        return self._entries(where, student)

    def proposed(self) -> Iterator[LedgerEntry]:
        """The proposed verdicts, sorted by student."""
        return self._entries("v.is_proposed = 1 ORDER BY v.student, v.number")

    def same(self, content: str, version: Version, *, proposed: bool = False) -> LedgerEntry | None:
        """A verdict on the same answers by the same version, from any student.

        With `proposed`, a proposed verdict counts too.
        """
        stages = json.dumps(version.stages, sort_keys=True)
        where = (
            "v.content = ? AND w.engine = ? AND w.stages = ? AND v.is_proposed <= ? "
            "AND v.report IS NOT NULL ORDER BY v.number DESC LIMIT 1"
        )
        found = self._entries(where, content, version.engine, stages, int(proposed))
        return next(found, None)

    def submission(self, entry: LedgerEntry) -> Submission:
        """The submission that a verdict is on, which must have been readable."""
        content = entry.record.content
        sql = "SELECT data FROM submissions WHERE content = ?"
        with self._errors():
            row = self._db.execute(sql, (content,)).fetchone()
        with self._damage(f"the submission of {entry.student}"):
            found = _unpacked(row[0], entry.student)
            if content_of(found) != content:
                raise ValueError("it is another submission")
        return with_present_names(found, self._course.stages if self._course else ())

    def accept(self) -> None:
        """Make the proposed verdicts the current ones."""
        with self._transaction() as db:
            db.execute("UPDATE verdicts SET is_proposed = 0")

    def forget_proposed(self) -> None:
        """Drop the proposed verdicts."""
        with self._transaction() as db:
            db.execute("DELETE FROM verdicts WHERE is_proposed = 1")

    def fact(self, name: str) -> str | None:
        """The fact noted under this name."""
        with self._errors():
            row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def note(self, name: str, value: str) -> None:
        """Note a fact under a name; replaces the earlier one."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def _entries(self, where: str, *values: object) -> Iterator[LedgerEntry]:
        with self._errors():
            for row in self._db.execute(f"{_SELECT} WHERE {where}", values):
                with self._damage(f"verdict number {row[0]}"):
                    entry = _entry(row)
                yield with_present_slugs(entry, self._course) if self._course else entry

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter from a damaged table
            is_busy = isinstance(error, sqlite3.OperationalError)
            raise unusable(self._file, error, "" if is_busy else _RESTORE) from None

    @contextmanager
    def _damage(self, what: str) -> Iterator[None]:
        """Turn every error in reading stored data into a KitError."""
        try:
            yield
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError, zlib.error):
            raise KitError(f"{self._file}: {what} is damaged{_RESTORE}") from None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), self._db:
            yield self._db


@contextmanager
def open_ledger(folder: Path, *, create: bool, course: Course | None = None) -> Iterator[Ledger]:
    """Open the ledger in a folder of results of a `course`.

    Raises KitError if it is missing or unreadable.
    """
    file = folder / FILE
    if not create and not file.is_file():
        raise KitError(f"{folder}: has no results yet: type `grade class SUBMISSIONS --out DIR`")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        database = sqlite3.connect(file, timeout=_BUSY_SECONDS)
    except sqlite3.Error as error:
        raise unusable(file, error) from None
    try:
        _prepare(database, file)
        yield Ledger(file, database, course)
    finally:
        database.close()


def _prepare(database: sqlite3.Connection, file: Path) -> None:
    try:
        if _format_of(database) == _FORMAT:
            return
        # In this mode readers do not wait for the writer, and a commit appends to one file.
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("BEGIN IMMEDIATE")  # another process may be creating the tables
        found = _format_of(database)
        if found == _FORMAT:
            database.commit()
            return
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if found or tables:
            raise KitError(f"{file}: is not a ledger of this version of the kit")
        for statement in _TABLES.split(";"):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {_FORMAT}")
        database.commit()
    except sqlite3.OperationalError as error:
        raise unusable(file, error) from None
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise KitError(f"{file}: is not a ledger: {error}{_RESTORE}") from None


def _format_of(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _entry(row: tuple[Any, ...]) -> LedgerEntry:
    """Make an entry of a row. Raises ValueError, or the errors that `_damage` catches."""
    if not all(isinstance(value, kind) for value, kind in zip(row, _KINDS, strict=True)):
        raise ValueError("a value does not have its column's type")
    number, student, content, notes, engine, stages, seed, device, *rest = row
    text, run_notes, at, seconds, submitted = rest
    came = _time_of(submitted) if submitted else None
    report = None
    if text is not None:
        report = replace(from_json(json.loads(text)), notes=_strings(json.loads(run_notes)))
    versions: Mapping[str, str] = json.loads(stages)
    _strings([*versions.keys(), *versions.values()])
    return LedgerEntry(
        record=SubmissionRecord(student, content, _strings(json.loads(notes)), came),
        version=Version(engine, versions),
        seed=seed,
        device=device,
        report=report,
        when=_time_of(at),
        seconds=seconds,
        number=number,
    )


def _text_of(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat()


def _time_of(text: str) -> datetime:
    """A time that `_text_of` wrote. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time has no zone")
    return moment


def _strings(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("not a list of strings")
    return tuple(values)


def _packed(submission: Submission) -> bytes:
    data = {
        "files": {name: text.decode("latin-1") for name, text in submission.files.items()},
        "script": submission.script,
        "cells": submission.cells,
    }
    return zlib.compress(json.dumps(data).encode())


def _unpacked(data: bytes, name: str) -> Submission:
    """Unpack a submission. Raises ValueError, or the errors that `_damage` catches."""
    found: Mapping[str, Any] = json.loads(zlib.decompressobj().decompress(data, _UNPACKED_CAP))
    files = {path: bytes(text, "latin-1") for path, text in dict(found["files"]).items()}
    cells = None if found["cells"] is None else _strings(found["cells"])
    script = None if found["script"] is None else _strings([found["script"]])[0]
    return Submission(name, files, script=script, cells=cells)
