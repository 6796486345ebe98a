"""Every reader of a file, with valid inputs and what damages them.

A reader gives what its type says or one of its errors, in few lines, soon and in little memory.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from grader.authoring.mutants.record import read_records
from grader.authoring.mutants.types import Records
from grader.channels.rosters import PointsImport, canvas_import
from grader.channels.scores import Scores, parse_scores
from grader.classes.folder.csv_files import parse_table, read_text
from grader.classes.folder.downloads import read_files
from grader.classes.folder.ledger import FILE as LEDGER
from grader.classes.folder.ledger import open_ledger
from grader.classes.folder.times import Times, read_times
from grader.classes.folder.types import LedgerEntry, SubmissionRecord, Version
from grader.classes.folder.uploads import Upload, heap_upload
from grader.classes.nbgrader.gradebook import FILE as GRADEBOOK
from grader.classes.nbgrader.gradebook import GradebookEntry as BookEntry
from grader.classes.nbgrader.gradebook import (
    ReleasedNotebook,
    read_deadlines,
    read_released,
    write_entries,
)
from grader.classes.nbgrader.restore import restored
from grader.classes.nbgrader.submitted import Submitted, read_submitted
from grader.classes.nbgrader.types import CellVerdict, ReleasedCell
from grader.classes.why.requests import Asked, read_requests
from grader.learning.hints.ladder import above_last_rung, read_hints
from grader.learning.hints.types import Hints
from grader.learning.predict.questions import read_predictions
from grader.learning.predict.types import Predictions
from grader.learning.workspace.exercises import keep_stub
from grader.learning.workspace.update import update_workspace
from grader.read.course_file import parse_toml, read_course
from grader.read.progress import read_progress, to_json, update_progress
from grader.read.stubs import read_stub
from grader.read.submission import read_submission, text_definitions
from grader.read.workspace import course_of, mark_workspace
from grader.types.course import Course, Stage
from grader.types.errors import KitError
from grader.types.progress import Progress
from grader.types.report import CheckResult, Diagnosis, Outcome, Report, StageResult, Status
from grader.types.submission import Submission
from grader.types.workspace import Workspace
from tests.kit.fuzz.damage import (
    as_json,
    as_toml,
    damaged_bytes,
    damaged_data,
    damaged_database,
    damaged_text,
)
from tests.kit.support.checkout import COURSE, TINY
from tests.kit.support.files import zipped

STAGE = TINY.stages[0]
ATTENTION = COURSE.stages[0]


@dataclass(frozen=True)
class Reader:
    """`read` is given bytes and an empty folder; it gives a value of the type `gives`.

    Or it raises one of the `errors`.
    """

    read: Callable[[bytes, Path], Any]
    gives: Any
    inputs: st.SearchStrategy[bytes]
    errors: tuple[type[Exception], ...] = (KitError,)


def _file(folder: Path, name: str, data: bytes) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def _stage(file: Path, data: bytes, root: Path, stage: Stage = STAGE) -> Stage:
    """The stage, in a course whose `file` holds the data."""
    _file(root, file.relative_to(stage.root).as_posix(), data)
    return replace(stage, root=root)


# --- an author's files -------------------------------------------------------------------------

COURSE_DATA: Any = parse_toml((TINY.root / "course.toml").read_text(encoding="utf-8"), "") | {
    "assignments": [{"name": "one", "stages": ["moving_average", "smooth"]}]
}


def _hints(data: bytes, folder: Path) -> Hints:
    stage = _stage(STAGE.hints_file, data, folder)
    hints = read_hints(stage)
    assert len(above_last_rung(stage)) <= len(data)
    return hints


# --- what is handed in -------------------------------------------------------------------------

CELL = {
    "cell_type": "code",
    "id": "a",
    "metadata": {},
    "outputs": [],
    "source": ["def f():\n", "  1"],
}
TEXT = {
    "cell_type": "markdown",
    "id": "b",
    "metadata": {"nbgrader": {"grade_id": "words"}},
    "source": "[x](attachment:p.png) <b> def g(): ](javascript:1)",
    "attachments": {"p.png": {"image/png": "AAAA"}},
}
NOTEBOOK: Any = {"cells": [CELL, TEXT], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
OLD_NOTEBOOK: Any = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"]}]}]}
RELEASED = (
    ReleasedCell("f-code", "code", "f", locked=False, checksum="c", solution=True),
    ReleasedCell("f", "code", "grade_here()", locked=True, checksum=None, points=2),
)


def _notebook(data: bytes, folder: Path) -> Submission:
    submission = read_submission(_file(folder, "a.ipynb", data))
    text_definitions(data, ["f", "g"])
    return submission


def _restored(data: bytes, folder: Path) -> tuple[str, ...]:
    found = restored(data, RELEASED)
    json.dumps(found.notebook, ensure_ascii=False).encode()
    ids = [cell["id"] for cell in found.notebook["cells"]]
    assert len(set(ids)) == len(ids) >= len(RELEASED)
    return found.notes


def _archive(data: bytes, folder: Path) -> Upload:
    file = _file(folder, "a.zip", data)
    return heap_upload(read_files([("a.zip", file)]), TINY.stages, "smoothing")


def _handed_in(data: bytes, folder: Path) -> Submitted:
    _file(folder, "timestamp.txt", data)
    _file(folder, "a.ipynb", as_json(NOTEBOOK))
    return read_submitted(folder, "ann", "a")


# --- what is kept ------------------------------------------------------------------------------

PROGRESS: Any = {
    "schema": 1,
    "last_hint": "smooth",
    "stages": {
        "smooth": {
            "rungs": 2,
            "status": "failed",
            "score": 1.5,
            "best": 2,
            "attempts": 3,
            "digest": "0f",
            "passed": "2026-01-05T10:00:00+00:00",
            "gave_up": True,
            "advice": {"rung": 1, "id": "a", "text": "b", "given": True},
            "more": [1],
        }
    },
    "more": {"a": 1},
}


def _progress(data: bytes, folder: Path) -> Progress:
    _file(folder, ".grade/progress.json", data)
    update_progress(folder, lambda progress: progress.with_hint("smooth", 1))
    found = read_progress(folder).progress
    assert json.loads(json.dumps(to_json(found)))["schema"] == 1
    return found


def _mark(data: bytes, folder: Path) -> Course:
    _file(folder, ".grade/workspace.json", data)
    return course_of(folder)


def _update(data: bytes, folder: Path) -> str:
    solution = STAGE.solution_file.read_bytes()
    course = replace(TINY, root=folder, stages=(_stage(STAGE.solution_file, solution, folder),))
    workspace = Workspace(folder / "mine", course)
    workspace.root.mkdir()
    mark_workspace(workspace.root, course)
    old, _, work = data.partition(b"\0\0\0")
    keep_stub(workspace, course.stages[0], old.decode("utf-8", "replace"))
    _file(workspace.root, f"exercises/{STAGE.file_name}", work)
    return update_workspace(workspace)[0].update.value


# --- a class -----------------------------------------------------------------------------------

CHECK = CheckResult(
    "smooth.x", "It is smooth", Outcome.FAILED, 0, 2, "wrong", Diagnosis("half", "Half"), 0.5
)
RESULT = StageResult("smooth", "Smooth", Status.FAILED, 1, 3, False, (CHECK,))
REPORT = Report("smoothing", "ann", "cpu", 1, 3, 0, (RESULT,), ("seed 7",))
VERSION = Version("engine", {"smooth": "1"})
WHEN = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
ENTRY = LedgerEntry(SubmissionRecord("ann", "c", ("odd",)), VERSION, 7, "cpu", REPORT, WHEN, 0.25)


def _ledger_seed() -> bytes:
    with TemporaryDirectory() as name:
        with open_ledger(Path(name), create=True) as ledger:
            ledger.add(ENTRY, Submission("ann", {"a.py": b"\xff"}))
            other = replace(ENTRY, record=SubmissionRecord("bob", "d"), report=None)
            ledger.add(other, Submission("bob", {}, cells=("x = 1",)), proposed=True)
            ledger.note("seed", "7")
        with closing(sqlite3.connect(Path(name, LEDGER))) as database:
            database.execute("PRAGMA journal_mode = DELETE")
        return Path(name, LEDGER).read_bytes()


def _ledger(data: bytes, folder: Path) -> list[LedgerEntry]:
    _file(folder, LEDGER, data)
    with open_ledger(folder, create=False) as ledger:
        for entry in [*ledger.latest(), *ledger.proposed()]:
            ledger.submission(entry)
        ledger.students(), ledger.fact("seed"), ledger.same("c", VERSION)
        ledger.add(replace(ENTRY, seed=8), None, proposed=True)
        ledger.accept()
        return list(ledger.latest())


_GRADEBOOK_TABLES = """
CREATE TABLE assignment (id TEXT PRIMARY KEY, name TEXT, duedate TEXT);
CREATE TABLE notebook (id TEXT PRIMARY KEY, name TEXT, assignment_id TEXT);
CREATE TABLE base_cell (id TEXT PRIMARY KEY, name TEXT, type TEXT, notebook_id TEXT);
CREATE TABLE grade_cells (id TEXT PRIMARY KEY, max_score FLOAT, cell_type TEXT);
CREATE TABLE source_cell (
    id TEXT, name TEXT, cell_type TEXT, source TEXT, checksum TEXT, locked BOOLEAN,
    notebook_id TEXT);
CREATE TABLE student (id TEXT PRIMARY KEY);
CREATE TABLE submitted_assignment (
    id TEXT PRIMARY KEY, assignment_id TEXT, student_id TEXT, timestamp TEXT, extension TEXT);
CREATE TABLE submitted_notebook (
    id TEXT PRIMARY KEY, assignment_id TEXT, notebook_id TEXT, flagged TEXT,
    late_submission_penalty FLOAT);
CREATE TABLE grade (
    id TEXT PRIMARY KEY, notebook_id TEXT, cell_id TEXT, auto_score FLOAT, manual_score FLOAT,
    needs_manual_grade TEXT);
CREATE TABLE comment (id TEXT PRIMARY KEY, notebook_id TEXT, cell_id TEXT, auto_comment TEXT);
INSERT INTO assignment VALUES ('a', 'birds', '2026-05-01 12:00:00.000000');
INSERT INTO notebook VALUES ('n', 'birds', 'a');
INSERT INTO base_cell VALUES ('1', 'f-code', 'SolutionCell', 'n'), ('2', 'f', 'GradeCell', 'n');
INSERT INTO grade_cells VALUES ('2', 4, 'code');
INSERT INTO source_cell VALUES
    ('3', 'f-code', 'code', 'f', 'c', 0, 'n'), ('4', 'f', 'code', 'f', NULL, 1, 'n');
INSERT INTO student VALUES ('ann');
INSERT INTO submitted_assignment VALUES ('s', 'a', 'ann', NULL, '1970-01-02 00:00:00.000000');
"""


def _gradebook_seed() -> bytes:
    with TemporaryDirectory() as name:
        file = Path(name, GRADEBOOK)
        with closing(sqlite3.connect(file)) as database:
            database.execute("PRAGMA page_size = 512")
            database.executescript(_GRADEBOOK_TABLES)
        return file.read_bytes()


_VERDICT = CellVerdict("f", "f-code", 2.5, 4.0, "<p>reason</p>", "2.5 of 4 points.")


def _gradebook(
    data: bytes, folder: Path
) -> tuple[list[ReleasedNotebook], dict[str | None, datetime]]:
    _file(folder, GRADEBOOK, data)
    found = read_released(folder, "birds"), read_deadlines(folder, "birds")
    write_entries(folder, "birds", "birds", [BookEntry("bob", None, (_VERDICT,))])
    return found


_SCORES = (
    b"assignment,duedate,timestamp,student_id,last_name,first_name,email,raw_score,"
    b"late_submission_penalty,score,max_score\n"
    b'birds,,2026-01-05,ann,Lee,"A, B",a@b.c,2.5,0,2.5,4\nbirds,,,bob,,,,0,0,0,4\n'
)
_WORKSHEET = (
    b"Identifier,Full name,Last modified (submission)\n"
    b'Participant 1234567,Ada,"Friday, 30 October 2026, 11:59 PM"\n'
)
_OTHER_SCORES = b"student_id;score\nann;1\nbob;\n"
_ROSTER = (
    b"Student,ID,SIS User ID,SIS Login ID,Section,Birds (12),Old (13)\n"
    b"Points Possible,,,,,10,(read only)\n"
    b'"Lee, Ann",7,1,ann,A,,3\n"Doe, Bob",8,2,bob,A,EX,\n'
)


def _roster(data: bytes, folder: Path) -> PointsImport:
    rows, _ = parse_table(read_text(_file(folder, "roster.csv", data)), "the roster")
    return canvas_import(rows, {"ann": 1.5, "bob_8": 2, "cas": 3}, "Birds")


def _times(data: bytes, folder: Path) -> Times:
    found = read_times(_file(folder, "times.csv", data), ZoneInfo("Europe/Berlin"), "birds")
    assert isinstance(found.others(["ann", "Ada Lovelace_1234567"]), list)
    return found


STUB, MUTANTS = STAGE.exercise_file.read_bytes(), STAGE.mutants_file.read_bytes()
READERS: dict[str, Reader] = {
    "course": Reader(
        lambda data, folder: read_course(_file(folder, "course.toml", data)),
        Course,
        damaged_text(COURSE_DATA, as_toml, [(TINY.root / "course.toml").read_bytes()]),
    ),
    "hints": Reader(_hints, Hints, damaged_bytes([STAGE.hints_file.read_bytes()])),
    "predictions": Reader(
        lambda *data: read_predictions(_stage(ATTENTION.predictions_file, *data, ATTENTION)),
        Predictions | None,
        damaged_bytes([ATTENTION.predictions_file.read_bytes()]),
    ),
    "mutants": Reader(
        lambda *data: read_records(_stage(STAGE.mutants_file, *data)),
        Records,
        damaged_text(parse_toml(MUTANTS.decode(), ""), as_toml, [MUTANTS]),
    ),
    "solution": Reader(
        lambda *data: read_stub(_stage(STAGE.solution_file, *data)),
        str,
        damaged_bytes([STAGE.solution_file.read_bytes()]),
    ),
    "notebook": Reader(
        _notebook, Submission, damaged_text(NOTEBOOK, as_json, [as_json(OLD_NOTEBOOK)])
    ),
    "old notebook": Reader(_notebook, Submission, damaged_data(OLD_NOTEBOOK).map(as_json)),
    "restored notebook": Reader(_restored, tuple[str, ...], damaged_text(NOTEBOOK, as_json)),
    "script": Reader(
        lambda data, folder: read_submission(_file(folder, "a.py", data)),
        Submission,
        damaged_bytes([STUB, b"# In [1]:\nx = 1\n\n# In[ ]:\ny = x\n"]),
    ),
    "archive": Reader(
        _archive,
        Upload,
        damaged_bytes(
            [
                zipped({"smooth.py": b"x = 1", "a/moving_average.py": b"y = 2" * 50}),
                zipped({"a\\smoothing.ipynb": as_json(NOTEBOOK), "../b.txt": b""}),
            ]
        ),
    ),
    "time": Reader(
        _handed_in,
        Submitted,
        damaged_bytes(
            [
                b"2026-01-05 10:00:00.123456 UTC",
                b"2026-01-05 10:00:00 Europe/Berlin",
                b"2026-01-05T10:00:00+01:00",
                b"5 Jan 2026 10am EST5EDT",
            ]
        ),
    ),
    "progress": Reader(_progress, Progress, damaged_text(PROGRESS, as_json)),
    "mark": Reader(_mark, Course, damaged_text({"schema": 1, "course": str(TINY.root)}, as_json)),
    "update": Reader(_update, str, damaged_bytes([STUB + b"\0\0\0" + STUB])),
    "ledger": Reader(_ledger, list[LedgerEntry], damaged_database(_ledger_seed())),
    "gradebook": Reader(
        _gradebook,
        tuple[list[ReleasedNotebook], dict[str | None, datetime]],
        damaged_database(_gradebook_seed()),
    ),
    "scores": Reader(
        lambda data, folder: parse_scores(read_text(_file(folder, "s.csv", data)), None, "s.csv"),
        Scores,
        damaged_bytes([_SCORES, _OTHER_SCORES]),
    ),
    "roster": Reader(_roster, PointsImport, damaged_bytes([_ROSTER])),
    "times": Reader(
        _times,
        Times,
        damaged_bytes(
            [
                b"student,submitted\nann,2026-10-30T23:59:00+01:00\nbob,2026-10-25 02:30:00\n",
                _WORKSHEET,
                _SCORES,
            ]
        ),
    ),
    "requests": Reader(
        lambda data, folder: read_requests(_file(folder, "requests.csv", data)),
        list[Asked],
        damaged_bytes([b'student,stage,words\nann,smooth,"why, please?"\nbob,,\n']),
    ),
}
