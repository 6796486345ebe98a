"""Reads a class's folder: one folder, notebook, .py or .zip file for each student.

It also reads a learning platform's download, where a student may have several files.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from unicodedata import normalize

from grader.classes.folder.downloads import ARCHIVE, downloaded, read_files
from grader.classes.folder.ledger import FILE as LEDGER
from grader.classes.folder.times import Times
from grader.classes.folder.types import SubmissionRecord
from grader.classes.folder.uploads import heap_upload, read_upload
from grader.classes.folder.versions import content_of
from grader.classes.late import zoned
from grader.classes.nbgrader.course import CONFIG
from grader.classes.nbgrader.submitted import time_of
from grader.read.files import name_in_text
from grader.read.submission import (
    FILES_CAP,
    is_left_out,
    is_systems,
    notebook_bytes,
    parse_cells,
    read_submission,
    text_cell_notes,
)
from grader.types.course import Assignment
from grader.types.errors import KitError, SubmissionFileError
from grader.types.submission import IS_A_LINK, Submission
from grader.types.text import safe_line

_LATE = "Canvas has marked it as late."
_EARLIER = "It is the last attempt: earlier ones were not graded."
_PROGRAMS = "has a name that only programs give: rename it if a student submitted it."
_SUFFIXES = (".ipynb", ".py", ARCHIVE)


@dataclass(frozen=True)
class Found:
    """Where one student's submission is.

    If a platform renamed the files, `files` holds the student's own name and the path of each, and
    `path` is the first of them; `notes` are sentences about what it says of them. `submitted` is
    when, in UTC, if that is known.
    """

    student: str
    path: Path
    files: tuple[tuple[str, Path], ...] = ()
    notes: tuple[str, ...] = ()
    submitted: datetime | None = None


def read_students(
    folder: Path, assignment: Assignment, times: Times | None = None
) -> tuple[list[Found], list[str]]:
    """All submissions sorted by student, and a sentence about each file that is no submission.

    The student's name is that of the folder or file, without what a learning platform added. In
    `submitted/` of an nbgrader course the assignment's folder counts, and so does the time beside
    it; `times` tell the others. Raises KitError for a folder without submissions.
    """
    entries = _entries(folder, assignment)
    # The file with the time may be a student's own, but not in what nbgrader has collected.
    is_collected = (folder.resolve().parent / CONFIG).is_file()
    found: dict[str, Found] = {}
    notes: dict[str, Found] = {}
    attempts: dict[str, str] = {}
    odd = []
    for entry in entries:
        path = Path(entry.path)
        shown = student_name(entry.name)
        if is_left_out(entry.name):
            if not is_systems(entry.name):
                odd.append(f"{shown} {_PROGRAMS}")
            continue
        known = downloaded(shown)
        student = known.student if known else shown
        is_link = entry.is_symlink()
        if known and known.is_note:
            is_folder = entry.is_dir(follow_symlinks=False)
            notes[student] = Found(student, path, () if is_folder else ((known.name, path),))
        elif entry.is_dir(follow_symlinks=False):
            inside = path / assignment.name
            is_there = os.path.isdir(inside) or os.path.islink(inside)
            own = inside if is_there and is_collected else path
            _add(found, student, shown, own, zoned(time_of(own)) if is_collected else None)
        elif known and known.name and (is_link or entry.is_file()):
            before = found.get(student, Found(student, path))
            if attempts.setdefault(student, known.attempt) != known.attempt:
                attempts[student] = known.attempt
                before = Found(student, path, notes=(_EARLIER,))
            files = (*before.files, (known.name, path))[:FILES_CAP]
            late = (_LATE,) if known.is_late else before.notes
            found[student] = Found(student, files[0][1], files, late)
        elif not is_link and (not entry.is_file() or path.suffix.lower() not in _SUFFIXES):
            odd.append(f"{shown} is not a folder, notebook, .py or .zip file.")
        else:
            student = Path(shown).stem if path.suffix.lower() in _SUFFIXES else student
            _add(found, student, shown, path)
    found = notes | found
    if not found:
        raise KitError(
            f"{folder}: has no submissions: put a folder, notebook, .py or .zip file for each "
            "student in it"
        )
    if times is not None:
        odd += times.others(found)
        found = {
            name: replace(one, submitted=times.of(name) or one.submitted)
            for name, one in found.items()
        }
    return sorted(found.values(), key=lambda one: one.student), odd


def student_name(name: str) -> str:
    """The name of a file or folder, or one that was typed, as text on one line.

    macOS writes é as two characters, and tables and course.toml as one.
    """
    return normalize("NFC", name_in_text(Path(name)))


def _entries(folder: Path, assignment: Assignment) -> list[os.DirEntry[str]]:
    """What is in a folder of submissions, by name. Raises KitError if it is another one."""
    if folder.is_file():
        raise KitError(f"{folder}: is a file: unpack it, and name the folder")
    if (folder / CONFIG).is_file():
        raise KitError(
            f"{folder}: is an nbgrader course: name {folder / 'submitted'}, or type "
            f"`grade class --nbgrader {folder} {assignment.name}`"
        )
    if (folder / LEDGER).is_file():
        raise KitError(f"{folder}: has results of `grade class`: name the folder of submissions")
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise KitError(f"{folder}: cannot be read: {error.strerror}") from None
    if any(entry.name in {stage.file_name for stage in assignment.stages} for entry in entries):
        raise KitError(
            f"{folder}: is one submission, not a folder of many: "
            f"`grade --submission {shlex.quote(str(folder))}`"
        )
    return entries


def _add(
    found: dict[str, Found], name: str, whole: str, path: Path, submitted: datetime | None = None
) -> None:
    """Add a submission for the student, or if that name is taken, for the whole file name.

    If that is taken too, for the name with a mark added.
    """
    free = whole if name in found else name
    while free in found:
        free += "'"
    note = f"Another submission has the name {name}: this one counts for {free}."
    found[free] = Found(free, path, notes=() if free == name else (note,), submitted=submitted)


def read_student(found: Found, assignment: Assignment) -> tuple[SubmissionRecord, Submission]:
    """Read a student's submission; one that cannot be graded is `refused`. Never raises."""
    notes: tuple[str, ...] = ()
    try:
        if os.path.islink(found.path):
            raise SubmissionFileError(f"{found.path}: {IS_A_LINK}")
        if os.path.isdir(found.path):
            upload = read_upload(found.path, assignment.stages, assignment.name)
            submission, notes = upload.submission, upload.notes
        elif found.files or found.path.suffix.lower() == ARCHIVE:
            files = found.files or ((found.path.name, found.path),)
            upload = heap_upload(read_files(files), assignment.stages, assignment.name)
            submission, notes = upload.submission, upload.notes
        elif found.path.suffix.lower() == ".ipynb":
            data = notebook_bytes(found.path)
            submission = Submission(str(found.path), {}, cells=parse_cells(data, str(found.path)))
            notes = tuple(text_cell_notes(data, assignment.stages))
        else:
            submission = read_submission(found.path)
    except Exception as error:  # noqa: BLE001 - no file that a stranger made may stop the others
        is_named = isinstance(error, SubmissionFileError)
        told = str(error) if is_named else f"{found.path}: cannot be read: {type(error).__name__}"
        kind = "folder" if os.path.isdir(found.path) else "file"
        reason = told.replace(f"{found.path}: ", f"The {kind} ").rstrip(".")
        reason = safe_line(f"{reason}.".replace(f"{found.path.parent}{os.sep}", ""))
        notes, submission = (reason,), Submission(found.student, {}, refused=reason)
    content = "" if submission.refused else content_of(submission)
    said = (*found.notes, *map(safe_line, notes))
    return SubmissionRecord(found.student, content, said, found.submitted), submission
