"""What a student has handed in for an assignment: which file counts, its bytes, and when."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from uuid import uuid4

from grader.read.mending import grade_id_of
from grader.read.submission import (
    DEPTH_CAP,
    FILES_CAP,
    NOTEBOOK_CAP,
    cell_source,
    is_left_out,
    notebook_cells,
    regular_bytes,
)
from grader.types.errors import SubmissionFileError
from grader.types.text import safe

_SUFFIX = ".ipynb"
_STAMP, _SECRET = "timestamp.txt", "submission_secret.txt"
_COMPANION_CAP = 1 << 16
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
    file, others = choose_notebook(folder, name, grade_ids)
    data = b""
    if file is None:
        notes.append(f"There is no notebook: {name}{_SUFFIX} was not handed in.")
    else:
        notes += told_of_name(file.relative_to(folder).as_posix(), name, others)
        try:
            data = regular_bytes(file, NOTEBOOK_CAP)
        except SubmissionFileError as error:
            notes.append(safe(f"The notebook {str(error).removeprefix(f'{file}: ')}."))
            file = None
    return HandedIn(student, file, data, tuple(map(safe, notes)), time_of(folder))


def choose_notebook(
    folder: Path, name: str, grade_ids: Collection[str]
) -> tuple[Path | None, list[str]]:
    """The notebook that counts: the one of that name, else the one that looks most like it.

    And what the others are called, where there is none of that name.
    """
    right = folder / f"{name}{_SUFFIX}"
    if os.path.lexists(right):
        return right, []
    found = ((path.relative_to(folder).as_posix(), path) for path in _notebooks(folder))
    ranked = most_like_it(((shown, _bytes_of(path)) for shown, path in found), grade_ids)
    return (folder / ranked[0], ranked[1:]) if ranked else (None, [])


def most_like_it(notebooks: Iterable[tuple[str, bytes]], grade_ids: Collection[str]) -> list[str]:
    """The names of these notebooks, first of the one that looks most like what was handed out.

    That is the one with most of the cells `grade_ids`, and of several such the one with the fewest
    stubs. A stranger chose how many there are: only the first are looked at.
    """
    looked_at = islice(notebooks, _LOOKED_AT)
    return [name for _, name in sorted((_rank(data, grade_ids), name) for name, data in looked_at)]


def told_of_name(shown: str, name: str, others: Sequence[str]) -> list[str]:
    """What is odd where the notebook that counts is called `shown`, in a sentence if anything is.

    The `others` were handed in as well.
    """
    if shown == f"{name}{_SUFFIX}":
        return []
    said = f"There is no {name}{_SUFFIX}, so {shown} was graded"
    if len(others) == 1:
        return [f"{said}, and {others[0]} was not."]
    return [f"{said}, and {len(others)} other notebooks were not." if others else f"{said}."]


def _notebooks(folder: Path) -> Iterator[Path]:
    """The notebooks in a folder and in those below; a stranger chose how many and how deep."""
    pending = [(folder, 0)]
    for parent, depth in pending:
        try:
            entries = sorted(os.scandir(parent), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                may_go_on = depth < DEPTH_CAP and len(pending) < FILES_CAP
                if may_go_on and not is_left_out(entry.name):
                    pending.append((Path(entry.path), depth + 1))
            elif is_left_out(entry.name) or not entry.name.lower().endswith(_SUFFIX):
                continue
            elif entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


def _bytes_of(path: Path) -> bytes:
    """A notebook's bytes; none, as if it were empty, where they cannot be read."""
    try:
        return regular_bytes(path, NOTEBOOK_CAP)
    except SubmissionFileError:
        return b""


def _rank(data: bytes, grade_ids: Collection[str]) -> tuple[int, int]:
    """The less, the more of the cells are in the notebook and the fewer of them are stubs."""
    try:
        cells = notebook_cells(data)
    except SubmissionFileError:
        return 1, 0
    shared = len({grade_id_of(cell) for cell in cells} & set(grade_ids))
    sources = (cell_source(cell) for cell in cells if isinstance(cell, dict))
    return -shared, sum("raise NotImplementedError" in source for source in sources)


def companions(folder: Path) -> dict[str, bytes]:
    """The files beside the notebook that nbgrader's exchange goes by, as it can go on with them.

    One student's that is missing or cannot be read would end `nbgrader release_feedback` for all:
    then the time is empty, and the secret one that nobody knows.
    """
    found = {}
    for name in (_STAMP, _SECRET):
        with suppress(SubmissionFileError, UnicodeDecodeError):
            data = regular_bytes(folder / name, _COMPANION_CAP)
            data.decode()
            found[name] = data
    if time_of(folder) is None:
        found[_STAMP] = b""
    return {_SECRET: f"{uuid4().hex}{uuid4().hex}".encode(), **found}


def time_of(folder: Path) -> datetime | None:
    """When it was handed in, in UTC: a time and a zone by name or offset, as the exchange has it.

    None for whatever else a student has put there.
    """
    from dateutil import parser, tz  # type: ignore[import-untyped]

    try:
        text = regular_bytes(folder / _STAMP, 200).decode("utf-8", "replace").strip()
        date, _, zone = text.rpartition(" ")
        known = tz.gettz(zone)
        moment: datetime = parser.parse(date if known else text)
        if known:
            moment = moment.replace(tzinfo=known)
        if moment.tzinfo is None:
            return moment
        return moment.astimezone(timezone.utc).replace(tzinfo=None)
    except (SubmissionFileError, ValueError, OverflowError):
        return None
