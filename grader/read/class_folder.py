"""A folder that a class has handed in: a folder, notebook, .py or .zip file for each student.

Or what a learning platform gives to download, where a student may have several files.
"""

from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

from grader.read.channels import heap_upload, read_upload, told_of_text
from grader.read.downloads import ARCHIVE, downloaded, read_files
from grader.read.files import name_in_text
from grader.read.submission import (
    FILES_CAP,
    NOTEBOOK_CAP,
    is_left_out,
    read_submission,
    regular_bytes,
)
from grader.read.versions import content_of
from grader.types.course import Assignment
from grader.types.errors import KitError, SubmissionFileError
from grader.types.ledger import HandIn
from grader.types.submission import Submission
from grader.types.text import safe

_SUFFIXES = (".ipynb", ".py", ARCHIVE)


@dataclass(frozen=True)
class Found:
    """Where one student's lies.

    What a platform has given other names is told by `files`: the student's own name of each file,
    and where it is. The `path` is then that of the first.
    """

    student: str
    path: Path
    files: tuple[tuple[str, Path], ...] = ()


def read_students(folder: Path, assignment: Assignment) -> tuple[list[Found], list[str]]:
    """Everybody's by their names, and what in the folder is nobody's, a sentence each.

    A student is called as the folder or the file is, without what a learning platform has added. In
    `submitted/` of an nbgrader course the folder of the assignment counts. Raises KitError for a
    folder of no submissions.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise KitError(f"{folder}: cannot be read: {error.strerror}") from None
    if any(entry.name in {stage.file_name for stage in assignment.stages} for entry in entries):
        raise KitError(
            f"{folder}: is one submission, not a folder of many: `grade --submission {folder}`"
        )
    found: dict[str, Found] = {}
    notes: dict[str, Found] = {}
    odd = []
    for entry in entries:
        path = Path(entry.path)
        shown = name_in_text(Path(entry.name))
        if is_left_out(entry.name):
            continue
        known = downloaded(shown)
        student = known.student if known else shown
        if entry.is_symlink():
            odd.append(f"{shown} is a link, which nobody follows.")
        elif known and known.is_note:
            notes[student] = Found(student, path)
        elif entry.is_dir():
            inside = path / assignment.name
            own = inside if inside.is_dir() and not inside.is_symlink() else path
            student = _free(found, student, shown)
            found[student] = Found(student, own)
        elif known and entry.is_file():
            before = found[student].files if student in found else ()
            files = (*before, (known.name, path))[:FILES_CAP]
            found[student] = Found(student, files[0][1], files)
        elif not entry.is_file() or path.suffix.lower() not in _SUFFIXES:
            odd.append(f"{shown} is no folder, notebook, .py or .zip file.")
        else:
            student = _free(found, Path(shown).stem, shown)
            found[student] = Found(student, path)
    found = notes | found
    if not found:
        raise KitError(f"{folder}: has no folder, notebook, .py or .zip file of a student in it")
    return sorted(found.values(), key=lambda one: one.student), odd


def _free(taken: Container[str], name: str, whole: str) -> str:
    """The name, or the whole of it; one that reads like another one's gets a mark at its end."""
    free = whole if name in taken else name
    while free in taken:
        free += "'"
    return free


def read_hand_in(found: Found, assignment: Assignment) -> tuple[HandIn, Submission | None]:
    """What a student has handed in; no submission where there is nothing that can be graded.

    Nothing that is there can make this fail.
    """
    notes: tuple[str, ...] = ()
    try:
        if found.path.is_dir():
            upload = read_upload(found.path, assignment.stages, assignment.name)
            submission, notes = upload.submission, upload.notes
        elif found.files or found.path.suffix.lower() == ARCHIVE:
            files = found.files or ((found.path.name, found.path),)
            upload = heap_upload(read_files(files), assignment.stages, assignment.name)
            submission, notes = upload.submission, upload.notes
        else:
            submission = read_submission(found.path)
            if submission.cells is not None:
                data = regular_bytes(found.path, NOTEBOOK_CAP)
                notes = tuple(told_of_text(data, assignment.stages))
    except SubmissionFileError as error:
        said = str(error).replace(f"{found.path}: ", "The file ").rstrip(".")
        return HandIn(found.student, "", (safe(f"{said}."),)), None
    return HandIn(found.student, content_of(submission), tuple(map(safe, notes))), submission
