"""A folder that a class has handed in: one folder, notebook or .py file for each student."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from grader.read.channels import read_upload
from grader.read.files import name_in_text
from grader.read.submission import read_submission
from grader.read.versions import content_of
from grader.types.course import Assignment, Course
from grader.types.errors import KitError, SubmissionFileError
from grader.types.ledger import HandIn
from grader.types.submission import Submission
from grader.types.text import safe

_SUFFIXES = (".ipynb", ".py")


@dataclass(frozen=True)
class Found:
    """Where one student's lies."""

    student: str
    path: Path


def read_students(folder: Path, assignment: Assignment) -> tuple[list[Found], list[str]]:
    """Everybody's by their names, and what in the folder is nobody's, a sentence each.

    A student is called as the folder or the file is. In `submitted/` of an nbgrader course the
    folder of the assignment counts. Raises KitError for a folder of no submissions.
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
    odd = []
    for entry in entries:
        path = Path(entry.path)
        shown = name_in_text(Path(entry.name))
        if entry.name.startswith("."):
            continue
        if entry.is_symlink():
            odd.append(f"{shown} is a link, which nobody follows.")
        elif entry.is_dir():
            inside = path / assignment.name
            own = inside if inside.is_dir() and not inside.is_symlink() else path
            while shown in found:  # it is called as the escapes of another one's read
                shown += "'"
            found[shown] = Found(shown, own)
        elif not entry.is_file() or path.suffix.lower() not in _SUFFIXES:
            odd.append(f"{shown} is no folder, notebook or .py file.")
        else:
            student = shown if Path(shown).stem in found else Path(shown).stem
            found[student] = Found(student, path)
    if not found:
        raise KitError(f"{folder}: has no folder, notebook or .py file of a student in it")
    return sorted(found.values(), key=lambda one: one.student), odd


def read_hand_in(
    found: Found, course: Course, assignment: Assignment
) -> tuple[HandIn, Submission | None]:
    """What a student has handed in; no submission where there is nothing that can be graded.

    Nothing that is there can make this fail.
    """
    notes: tuple[str, ...] = ()
    try:
        if found.path.is_dir():
            upload = read_upload(found.path, course, assignment.stages, assignment.name)
            submission, notes = upload.submission, upload.notes
        else:
            submission = read_submission(found.path)
    except SubmissionFileError as error:
        said = safe(str(error).replace(f"{found.path}: ", "").rstrip("."))
        return HandIn(found.student, "", (f"{said[:1].upper()}{said[1:]}.",)), None
    return HandIn(found.student, content_of(submission), notes), submission
