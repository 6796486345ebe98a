"""What a student has handed in for an assignment: which file counts, its bytes, and when."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from grader.read.submission import NOTEBOOK_CAP, regular_bytes
from grader.types.errors import SubmissionFileError

_SUFFIX = ".ipynb"
_STAMP = "timestamp.txt"
_LOOKED_AT = 50  # notebooks of one student


@dataclass(frozen=True)
class HandedIn:
    """One student's: the notebook that counts, None if there is none, and its bytes.

    `notes` say what was odd about it, each in one sentence; `when` is in UTC.
    """

    student: str
    file: Path | None
    data: bytes
    notes: tuple[str, ...]
    when: datetime | None


def read_handed_in(
    folder: Path, student: str, name: str, grade_ids: Collection[str] = ()
) -> HandedIn:
    """What is in the folder that a student handed in, where the notebook should be called `name`.

    Nothing in it can make this fail. Where there is no notebook of that name, one of another name
    counts, first the one that has most of the cells `grade_ids`.
    """
    notes: list[str] = []
    file = choose_notebook(folder, name, grade_ids)
    data = b""
    if file is None:
        notes.append(f"There is no notebook: {name}{_SUFFIX} was not handed in.")
    else:
        if file.name != name + _SUFFIX or file.parent != folder:
            shown = file.relative_to(folder).as_posix()
            notes.append(f"There is no {name}{_SUFFIX}, so {shown} was graded.")
        try:
            data = regular_bytes(file, NOTEBOOK_CAP)
        except SubmissionFileError as error:
            notes.append(f"The notebook {str(error).removeprefix(f'{file}: ')}.")
            file = None
    return HandedIn(student, file, data, tuple(notes), _when(folder))


def choose_notebook(folder: Path, name: str, grade_ids: Collection[str]) -> Path | None:
    """The notebook that counts: the one of that name, else the one that looks most like it."""
    right = folder / f"{name}{_SUFFIX}"
    if os.path.lexists(right):
        return right
    others: list[tuple[int, str, Path]] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(entry for entry in folders if not entry.startswith("."))
        for entry in sorted(files):
            if entry.lower().endswith(_SUFFIX) and len(others) < _LOOKED_AT:
                path = Path(parent, entry)
                others.append((-_shared(path, grade_ids), str(path), path))
    return min(others)[2] if others else None


def _shared(path: Path, grade_ids: Collection[str]) -> int:
    """How many of the cells are in the notebook."""
    try:
        notebook = json.loads(regular_bytes(path, NOTEBOOK_CAP))
        found = {cell["metadata"]["nbgrader"]["grade_id"] for cell in notebook["cells"]}
    except (SubmissionFileError, ValueError, RecursionError, LookupError, TypeError):
        return 0
    return len(found & set(grade_ids))


def _when(folder: Path) -> datetime | None:
    """When it was handed in, as the exchange writes it: a time, and a zone by name or offset."""
    from dateutil import parser, tz  # type: ignore[import-untyped]

    try:
        text = regular_bytes(folder / _STAMP, 200).decode("utf-8", "replace").strip()
    except SubmissionFileError:
        return None
    date, _, zone = text.rpartition(" ")
    try:
        moment: datetime = parser.parse(date if tz.gettz(zone) else text)
    except (ValueError, OverflowError):
        return None
    if tz.gettz(zone):
        moment = moment.replace(tzinfo=tz.gettz(zone))
    if moment.tzinfo is None:
        return moment
    return moment.astimezone(timezone.utc).replace(tzinfo=None)
