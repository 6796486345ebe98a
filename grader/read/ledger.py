"""The ledger of a class, an SQLite file: every verdict there ever was, and what was handed in.

Nothing in it is ever changed but that a proposed verdict becomes one that counts. Each verdict is
committed as it comes, so whatever ends the process, only those not yet here are lost.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.types.errors import KitError
from grader.types.ledger import Entry, HandIn, Version
from grader.types.report import from_json, to_json
from grader.types.submission import Submission

FILE = "ledger.sqlite"
_FORMAT = 1
_BUSY_SECONDS = 30.0
_TABLES = """
CREATE TABLE versions (
    id INTEGER PRIMARY KEY, engine TEXT NOT NULL, stages TEXT NOT NULL, UNIQUE (engine, stages));
CREATE TABLE submissions (content TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE verdicts (
    number INTEGER PRIMARY KEY, student TEXT NOT NULL, content TEXT NOT NULL, notes TEXT NOT NULL,
    version INTEGER NOT NULL REFERENCES versions, seed INTEGER NOT NULL, device TEXT NOT NULL,
    report TEXT, run_notes TEXT NOT NULL, at TEXT NOT NULL, seconds REAL NOT NULL,
    is_lost INTEGER NOT NULL, is_proposed INTEGER NOT NULL);
CREATE INDEX by_student ON verdicts (student, number);
CREATE INDEX by_content ON verdicts (content);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
_SELECT = (
    "SELECT v.number, v.student, v.content, v.notes, w.engine, w.stages, v.seed, v.device, "
    "v.report, v.run_notes, v.at, v.seconds, v.is_lost "
    "FROM verdicts v JOIN versions w ON v.version = w.id"
)


class Ledger:
    """An open ledger. Whatever SQLite cannot do, as with a full disk, is a KitError."""

    def __init__(self, file: Path, database: sqlite3.Connection) -> None:
        self._file = file
        self._db = database

    def add(self, entry: Entry, submission: Submission | None, *, proposed: bool = False) -> None:
        """Write down a verdict and, once for all who hand in the same, what it is about."""
        hand_in, version = entry.hand_in, entry.version
        report = None if entry.report is None else json.dumps(to_json(entry.report))
        run_notes = json.dumps(() if entry.report is None else entry.report.notes)
        stages = json.dumps(version.stages, sort_keys=True)
        with self._transaction() as db:
            if submission is not None:
                kept = (hand_in.content, _packed(submission))
                db.execute("INSERT OR IGNORE INTO submissions VALUES (?, ?)", kept)
            known = (version.engine, stages)
            db.execute("INSERT OR IGNORE INTO versions (engine, stages) VALUES (?, ?)", known)
            db.execute(
                "INSERT INTO verdicts (student, content, notes, version, seed, device, report, "
                "run_notes, at, seconds, is_lost, is_proposed) SELECT ?, ?, ?, id, ?, ?, ?, ?, ?, "
                "?, ?, ? FROM versions WHERE engine = ? AND stages = ?",
                (
                    *(hand_in.student, hand_in.content, json.dumps(hand_in.notes), entry.seed),
                    *(entry.device, report, run_notes, entry.when, entry.seconds),
                    *(entry.is_lost, proposed, *known),
                ),
            )

    def students(self) -> list[str]:
        """Who has a verdict that counts."""
        return self._names("SELECT DISTINCT student FROM verdicts WHERE is_proposed = 0")

    def latest(self) -> Iterator[Entry]:
        """The verdict on each student that counts, by their names."""
        numbers = "SELECT max(number) FROM verdicts WHERE is_proposed = 0 GROUP BY student"
        return self._entries(f"v.number IN ({numbers}) ORDER BY v.student")

    def latest_of(self, student: str) -> Entry | None:
        """The verdict on a student that counts."""
        where = "v.student = ? AND v.is_proposed = 0 ORDER BY v.number DESC LIMIT 1"
        return next(self._entries(where, student), None)

    def history(self, student: str) -> Iterator[Entry]:
        """All verdicts on a student that count or did once, the oldest first."""
        where = "v.student = ? AND v.is_proposed = 0 ORDER BY v.number"
        return self._entries(where, student)

    def proposed(self) -> Iterator[Entry]:
        """The verdicts that are proposed, by the students' names."""
        return self._entries("v.is_proposed = 1 ORDER BY v.student, v.number")

    def proposed_for(self, student: str) -> Entry | None:
        """The verdict that is proposed for a student."""
        where = "v.student = ? AND v.is_proposed = 1 ORDER BY v.number DESC LIMIT 1"
        return next(self._entries(where, student), None)

    def same(self, content: str, version: Version, *, proposed: bool = False) -> Entry | None:
        """A verdict on the same answers by the same version, whoever handed them in.

        One that is only proposed will do where `proposed` says so.
        """
        stages = json.dumps(version.stages, sort_keys=True)
        where = (
            "v.content = ? AND w.engine = ? AND w.stages = ? AND v.is_proposed <= ? "
            "AND v.report IS NOT NULL ORDER BY v.number DESC LIMIT 1"
        )
        found = self._entries(where, content, version.engine, stages, int(proposed))
        return next(found, None)

    def submission(self, content: str, name: str) -> Submission | None:
        """What was handed in, if it could be read then."""
        with self._errors():
            row = self._db.execute(
                "SELECT data FROM submissions WHERE content = ?", (content,)
            ).fetchone()
        return None if row is None else _unpacked(row[0], name)

    def accept(self) -> None:
        """Have the proposed verdicts count."""
        with self._transaction() as db:
            db.execute("UPDATE verdicts SET is_proposed = 0")

    def forget_proposed(self) -> None:
        """Drop the proposed verdicts."""
        with self._transaction() as db:
            db.execute("DELETE FROM verdicts WHERE is_proposed = 1")

    def fact(self, name: str) -> str | None:
        """What was noted down under this name."""
        with self._errors():
            row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def note(self, name: str, value: str) -> None:
        """Note something down under a name, in the place of what was there."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def _entries(self, where: str, *values: object) -> Iterator[Entry]:
        with self._errors():
            for row in self._db.execute(f"{_SELECT} WHERE {where}", values):
                yield _entry(row)

    def _names(self, sql: str) -> list[str]:
        with self._errors():
            return sorted(str(name) for (name,) in self._db.execute(sql))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise KitError(f"{self._file}: {error}") from None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), self._db:
            yield self._db


@contextmanager
def open_ledger(folder: Path, *, create: bool) -> Iterator[Ledger]:
    """The ledger of a folder of results. Raises KitError for none and for one of another format."""
    file = folder / FILE
    if not create and not file.is_file():
        raise KitError(f"{folder}: there are no results: type `grade class SUBMISSIONS --out DIR`")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(file, timeout=_BUSY_SECONDS)
    except (OSError, sqlite3.Error) as error:
        raise KitError(f"{file}: cannot be opened: {error}") from None
    try:
        _prepare(database, file)
        yield Ledger(file, database)
    finally:
        database.close()


def _prepare(database: sqlite3.Connection, file: Path) -> None:
    try:
        if _format_of(database) == _FORMAT:
            return
        # Readers do not wait for the writer, and a commit is one write at the end of a file.
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("BEGIN IMMEDIATE")  # somebody else may be at it
        found = _format_of(database)
        if found == _FORMAT:
            database.rollback()
            return
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if found or tables:
            raise KitError(f"{file}: is not a ledger of this version of the kit")
        for statement in _TABLES.split(";"):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {_FORMAT}")
        database.commit()
    except sqlite3.Error as error:
        raise KitError(f"{file}: is no ledger: {error}") from None


def _format_of(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _entry(row: tuple[Any, ...]) -> Entry:
    number, student, content, notes, engine, stages, seed, device, *rest = row
    text, run_notes, at, seconds, is_lost = rest
    report = None
    if text is not None:
        report = replace(from_json(json.loads(text)), notes=tuple(json.loads(run_notes)))
    return Entry(
        hand_in=HandIn(student, content, tuple(json.loads(notes))),
        version=Version(engine, json.loads(stages)),
        seed=seed,
        device=device,
        report=report,
        when=at,
        seconds=seconds,
        is_lost=bool(is_lost),
        number=number,
    )


def _packed(submission: Submission) -> bytes:
    data = {
        "files": {name: text.decode("latin-1") for name, text in submission.files.items()},
        "script": submission.script,
        "cells": submission.cells,
    }
    return zlib.compress(json.dumps(data).encode())


def _unpacked(data: bytes, name: str) -> Submission:
    found: Mapping[str, Any] = json.loads(zlib.decompress(data))
    files = {path: text.encode("latin-1") for path, text in found["files"].items()}
    cells = None if found["cells"] is None else tuple(found["cells"])
    return Submission(name, files, script=found["script"], cells=cells)
