"""Reads the downloads of learning platforms: their file names, and archives.

Moodle puts each submission into a folder "Ada Lovelace_1234567_assignsubmission_file_", or, without
folders, starts each file name with that. Canvas names each file
"lovelaceada_LATE_123_456_softmax.py": the student, LATE if it is late, the student's number, the
file's number, and the file's name; if the assignment is anonymous,
"LATE_anon_aB3dE_456_softmax.py" (see lib/content_zipper.rb of instructure/canvas-lms). Blackboard
names it "Homework 1_alovelace_attempt_2026-10-30-23-59-00_softmax.py", for each attempt, and adds a
.txt file to each. A title and a login may hold "_", so both together name the student.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, is_zipfile

from grader.read.course_file import FILE_NAME
from grader.read.submission import (
    DEPTH_CAP,
    FILE_CAP,
    FILES_CAP,
    FOLDER_CAP,
    NOTEBOOK_CAP,
    OUTPUTS_CAP,
    is_left_out,
    notebook_bytes,
    python_bytes,
    read_notebook,
    regular_bytes,
)
from grader.types.errors import SubmissionFileError
from grader.types.submission import EXERCISES
from grader.types.text import safe_line

ARCHIVE = ".zip"
_ARCHIVE_CAP = NOTEBOOK_CAP + FOLDER_CAP
_ENTRY = b"PK\x01\x02"  # starts each entry in an archive's directory
_ENTRIES_CAP = 20_000
_PATH_CAP = 1000  # characters of an entry's name, with its folders
# The end of a file's name is the student's own: it may look like what a platform puts first.
_CANVAS = re.compile(
    r"(?P<name>(?:(?!_\d+_).)+?)_(?P<late>LATE_)?(?P<number>\d+)_\d+_(?P<file>.+)", re.S
)
_ANONYMOUS = re.compile(r"(?P<late>LATE_)?(?P<who>anon_[0-9A-Za-z]{5})_\d+_(?P<file>.+)", re.S)
_BLACKBOARD = re.compile(
    r"(?P<who>(?:(?!_\d+_(?:\d+|assignsubmission)_).)+?)"
    r"_attempt_(?P<attempt>\d{4}(?:-\d\d){5})(?:\.txt|_(?P<file>.+))",
    re.S,
)
_MOODLE = re.compile(
    r"(?P<who>.+?_\d+)_assignsubmission_(?P<kind>file|onlinetext)_?(?P<file>.*)", re.S
)


@dataclass(frozen=True)
class Downloaded:
    """The student, and the student's own name of the file ("" for a folder).

    A note is text that the student typed on the platform, and no submission. A platform may say
    that a file came late, but not when, or of which `attempt` it is: a later one sorts after it.
    """

    student: str
    name: str
    is_note: bool = False
    is_late: bool = False
    attempt: str = ""


def downloaded(name: str) -> Downloaded | None:
    """What a learning platform's file name says; None if a person chose the name.

    The student keeps the platform's number, because two students may have the same name.
    """
    if anonymous := _ANONYMOUS.fullmatch(name):
        late = anonymous["late"] is not None
        return Downloaded(anonymous["who"], anonymous["file"], is_late=late)
    if board := _BLACKBOARD.fullmatch(name):
        own, attempt = board["file"], board["attempt"]
        return Downloaded(board["who"], own or name, is_note=own is None, attempt=attempt)
    if canvas := _CANVAS.fullmatch(name):
        student = f"{canvas['name']}_{canvas['number']}"
        return Downloaded(student, canvas["file"], is_late=canvas["late"] is not None)
    if moodle := _MOODLE.fullmatch(name):
        return Downloaded(moodle["who"], moodle["file"], is_note=moodle["kind"] == "onlinetext")
    return None


@dataclass
class Heap:
    """One student's .py files and notebooks by path, and the names of all other files.

    `twice` holds the name of the file or archive whose file counts, if there are several.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    notebooks: dict[str, bytes] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    twice: dict[str, str] = field(default_factory=dict)
    room: int = _ARCHIVE_CAP  # bytes that may still be added
    unread: int = OUTPUTS_CAP  # bytes of notebooks that may still be unpacked

    def add(self, name: str, data: bytes, place: str) -> None:
        """Add a file that is in the archive `place`. Raises SubmissionFileError if it is too much.

        It replaces an earlier one of that name.
        """
        self.room -= len(data)
        if self.room < 0:
            most = _ARCHIVE_CAP >> 20
            raise SubmissionFileError(f"The submission is larger than {most} MiB")
        if len(self.files) >= FILES_CAP:
            raise SubmissionFileError(f"The submission has more than {FILES_CAP} .py files")
        files = self.notebooks if _is_notebook(name) else self.files
        if files is self.files:
            name, data = f"{name[:-3]}.py", python_bytes(data)
        if files.get(name, data) != data:
            self.twice[name] = place
        files[name] = data


def read_files(files: Iterable[tuple[str, Path]]) -> Heap:
    """Read these files, given with the student's own names, and the archives among them.

    Raises SubmissionFileError.
    """
    heap = Heap()
    for name, path in files:
        if is_left_out(name):
            continue
        if name.lower().endswith(ARCHIVE):
            _unpack(path, name, heap)
        elif _is_notebook(name):
            heap.add(name, notebook_bytes(path), path.name)
        elif name.lower().endswith(".py"):
            heap.add(name, regular_bytes(path, FILE_CAP), path.name)
        else:
            heap.others.append(name)
    return heap


def _is_notebook(name: str) -> bool:
    return name.lower().endswith(".ipynb")


def _content(file: IO[bytes], shown: str, heap: Heap) -> bytes:
    """The bytes of a file in an archive. Raises SubmissionFileError."""
    if _is_notebook(shown):
        try:
            data = read_notebook(file, heap.unread)
        except SubmissionFileError as error:
            raise SubmissionFileError(f"{shown} {error}") from None
        heap.unread -= file.tell()
        return data
    data = file.read(FILE_CAP + 1)
    if len(data) > FILE_CAP:
        raise SubmissionFileError(f"{shown} is larger than {FILE_CAP >> 20} MiB")
    return data


def _parts(name: str) -> tuple[str, ...]:
    """The folders and the file that an entry of an archive names."""
    path = PurePosixPath(name.replace("\\", "/"))
    return tuple(part for part in path.parts if part not in ("/", "//", ".."))


def _exercises(paths: Collection[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """The exercises/ of each student's copy: only its .py files count, as a copy has the kit's."""
    copies = {(*parts[:-1], EXERCISES) for parts in paths if parts[-1:] == (FILE_NAME,)}
    return copies & {parts[:-1] for parts in paths}


def _unpack(place: Path, name: str, heap: Heap) -> None:
    """Add an archive's files to the heap. Writes nothing, and trusts no name in the archive."""
    data = regular_bytes(place, _ARCHIVE_CAP)
    if data.count(_ENTRY) > _ENTRIES_CAP:
        raise SubmissionFileError(f"{name}: has more than {_ENTRIES_CAP} files")
    try:
        if not is_zipfile(BytesIO(data)):
            raise SubmissionFileError(f"{name}: is not a complete zip file")
        with ZipFile(BytesIO(data)) as archive:
            entries = archive.infolist()
            if any(len(entry.filename) > _PATH_CAP for entry in entries):
                raise SubmissionFileError(f"{name}: has a name that is too long")
            paths = [_parts(entry.filename) for entry in entries]
            counting = _exercises(paths)
            for entry, parts in zip(entries, paths, strict=True):
                inside = safe_line("/".join(parts))
                if not parts or entry.is_dir() or any(map(is_left_out, parts)):
                    continue
                is_own = any(parts[:depth] in counting for depth in range(DEPTH_CAP + 1))
                if inside.lower().endswith(".py") and counting and not is_own:
                    continue
                if stat.S_ISLNK(entry.external_attr >> 16):
                    heap.others.append(f"the link {inside}")
                    continue
                if not _is_notebook(inside) and not inside.lower().endswith(".py"):
                    heap.others.append(inside)
                    continue
                if len(parts) > DEPTH_CAP + 1:
                    raise SubmissionFileError(f"{name}: has too many folders")
                if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                    raise SubmissionFileError(
                        f"{name}: uses a compression that the kit cannot read"
                    )
                if entry.flag_bits & 1:
                    raise SubmissionFileError(f"{name}: is locked with a password")
                with archive.open(entry) as file:
                    heap.add(inside, _content(file, f"{name}: {inside}", heap), name)
    except SubmissionFileError:
        raise
    except Exception as error:  # noqa: BLE001 - zipfile believes what a damaged archive says
        is_locked = type(error) is RuntimeError  # by some kinds of encryption
        why = str(error) if is_locked else "it is damaged"
        raise SubmissionFileError(f"{name}: cannot be unpacked: {why}") from None
