"""Reads a student's submission to an assignment: which file counts, its bytes, and the time."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from uuid import uuid4

from grader.classes.nbgrader.restore import grade_id_of
from grader.read.files import name_in_text
from grader.read.submission import (
    DEPTH_CAP,
    ENTRIES_CAP,
    FILES_CAP,
    NOTEBOOK_CAP,
    cell_source,
    is_left_out,
    is_systems,
    notebook_bytes,
    notebook_cells,
    regular_bytes,
    why_unread,
)
from grader.types.errors import KitError, SubmissionFileError
from grader.types.submission import IS_A_LINK
from grader.types.text import listed, safe, safe_line

_SUFFIX = ".ipynb"
_OTHERS = (".py", ".zip")  # what `grade class SUBMISSIONS` reads too
# A time zone's name. The library would open a file if it were given a path.
_ZONE = re.compile(r"[A-Z][\w+-]*(/[A-Z][\w+-]*)*", re.ASCII | re.IGNORECASE)
# An ending that a browser or Windows has added, and not one of an archive.
_HIDDEN = re.compile(r".+\.(?:ipynb|py)\.(?!(?:gz|bz2|xz|7z|rar|zip)$)\w{1,5}")
_STUB = "raise NotImplementedError"
_DEFINING = re.compile(r"^[ \t]*(async def|def|class)\s", re.MULTILINE)
_STAMP, _SECRET = "timestamp.txt", "submission_secret.txt"
_COMPANION_CAP = 1 << 16
_NAMED, _NAME_SHOWN = 3, 60  # how many skipped files to name, and how much of each name
_READ_CAP = 50  # notebooks of one student
_BYTES_CAP = 2 * NOTEBOOK_CAP  # of all of them: a few seconds


@dataclass(frozen=True)
class Submitted:
    """One student's submission: the notebook that counts (None if there is none) and its bytes.

    Each of the `notes` is a sentence about something unusual; `when` is in UTC.
    """

    student: str
    file: Path | None
    data: bytes
    notes: tuple[str, ...]
    when: datetime | None


def read_submitted(
    folder: Path, student: str, name: str, grade_ids: Collection[str] = ()
) -> Submitted:
    """Read a student's folder, where the notebook should be called `name`. Never raises.

    `choose_notebook` says which one counts.
    """
    notes: list[str] = []
    if is_linked(folder):
        why = safe(f"The folder {folder.name} of {folder.parent.name} {IS_A_LINK}.")
        return Submitted(student, None, b"", (why,), None)
    file, others = choose_notebook(folder, name, grade_ids)
    data = b""
    names = names_in(folder)
    if file is None and (why := _why_closed(folder)):
        notes.append(f"The folder {why}.")
    elif file is None:
        advice = renaming([each for each in names if ".py." not in each], name)
        advice = f": {advice}" if advice else ""
        notes.append(
            f"There is no notebook: {name}{_SUFFIX} was not submitted{only(names)}{advice}."
        )
    else:
        notes += name_notes(file.relative_to(folder).as_posix(), name, others)
        try:
            data = notebook_bytes(file, folder)
        except SubmissionFileError as error:
            notes.append(f"The notebook {str(error).removeprefix(f'{file}: ')}.")
            file = None
    if any(each.lower().endswith(_OTHERS) for each in names):
        notes.append("Only notebooks are graded here, not .py or .zip files.")
    return Submitted(student, file, data, tuple(map(safe_line, notes)), time_of(folder))


def is_linked(folder: Path) -> bool:
    """Whether a folder submitted/STUDENT/ASSIGNMENT, or the student's folder, is a link."""
    return os.path.islink(folder) or os.path.islink(folder.parent)


def choose_notebook(
    folder: Path, name: str, grade_ids: Collection[str]
) -> tuple[Path | None, list[str]]:
    """The notebook that counts, as in `most_like_it`, and the names of the others."""
    right = f"{name}{_SUFFIX}"
    there = [folder / right] if os.path.lexists(folder / right) else []
    some = islice(_notebooks(folder), _READ_CAP)
    found = {path.relative_to(folder).as_posix(): path for path in (*there, *some)}
    if len(found) < 2:
        return next(iter(found.values()), None), []
    counted, *others = most_like_it(_read(found, folder, right), right, grade_ids)
    return found[counted], others


def most_like_it(
    notebooks: Iterable[tuple[str, bytes]], right: str, grade_ids: Collection[str]
) -> list[str]:
    """The names of these notebooks; the one that counts first, the others in order.

    It is the one called `right`, unless nothing is written there and something is in another of
    the released notebook. Else it is the one with most of the cells `grade_ids`, then with the
    fewest stubs, then one that defines something. A student chooses how many files there are, so
    only the first `_READ_CAP` are read.
    """
    some = islice(notebooks, _READ_CAP)
    ranked = sorted((*_rank(data, name == right, grade_ids), name) for name, data in some)
    names = [name for *_, name in ranked]
    return [names[0], *(sorted(names[1:]) if right in names else names[1:])]


def name_notes(shown: str, name: str, others: Sequence[str]) -> list[str]:
    """A sentence if the notebook that counts is called `shown` and not `name`, or not the only one.

    The `others` were submitted too.
    """
    right = f"{name}{_SUFFIX}"
    skipped = list(map(safe_line, (other for other in others if other != right)))
    if shown == right and not skipped:
        return []
    start = ""
    if shown != right:
        start = f"{'Nothing is written in' if right in others else 'There is no'} {right}, so "
    verb = "were" if skipped[1:] else "was"
    end = f", and {listed(skipped, most=1)} {verb} not" if skipped else ""
    return [f"{start}{safe_line(shown)} was graded{end}."]


def only(names: Iterable[str]) -> str:
    """The end of a sentence that names the first few files that are there instead."""
    named = listed([safe_line(name[:_NAME_SHOWN]) for name in sorted(names)], most=_NAMED)
    return f", only {named}" if named else ""


def hidden_names(names: Iterable[str]) -> list[str]:
    """Those of these files that would count without the last ending of their names."""
    return sorted(filter(_HIDDEN.fullmatch, names))


def renaming(names: Collection[str], notebook: str = "") -> str:
    """Advice if some of these files are `hidden_names`, or the notebook as .json; else ""."""
    endings = [Path(Path(name).stem).suffix for name in hidden_names(names)]
    endings += [_SUFFIX for name in names if notebook and name == f"{notebook}.json"]
    if endings[1:]:
        return f"rename them, so that their names end with {endings[0]}"
    return f"rename it, so that its name ends with {endings[0]}" if endings else ""


def names_in(folder: Path) -> list[str]:
    """What a student put into a folder, by name, and what of it is a link or a folder."""
    try:
        entries = list(islice(os.scandir(folder), ENTRIES_CAP))
    except OSError:
        return []
    own = [entry for entry in entries if entry.name not in (_STAMP, _SECRET)]
    return [_called(entry) for entry in own if not is_systems(entry.name)]


def _why_closed(folder: Path) -> str:
    """Why a folder cannot be listed; "" if it can."""
    try:
        os.scandir(folder).close()
    except OSError as error:
        return why_unread(error)
    return ""


def _called(entry: os.DirEntry[str]) -> str:
    name = name_in_text(Path(entry.name))
    if entry.is_symlink():
        return f"the link {name}"
    return f"the folder {name}" if entry.is_dir(follow_symlinks=False) else name


def _notebooks(folder: Path) -> Iterator[Path]:
    """The notebooks in a folder and its subfolders; a student chose how many and how deep."""
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


def _read(notebooks: Mapping[str, Path], below: Path, right: str) -> Iterator[tuple[str, bytes]]:
    """Each name with the notebook's bytes, empty if they cannot be read or are too many."""
    room = _BYTES_CAP
    for shown, path in notebooks.items():
        data = b""
        with suppress(SubmissionFileError):
            if shown == right:  # it counts however large its outputs are
                data = notebook_bytes(path, below)
            else:
                data = regular_bytes(path, min(room, NOTEBOOK_CAP), below)
        room -= len(data)
        yield shown, data


def _rank(data: bytes, is_right: bool, grade_ids: Collection[str]) -> tuple[int, int, int, bool]:
    """A sort key: lower for work under the right name, then for more of the released cells."""
    shared, stubs, is_written = 0, 0, False
    with suppress(SubmissionFileError):
        cells = [cell for cell in notebook_cells(data) if isinstance(cell, dict)]
        shared = len({grade_id_of(cell) for cell in cells} & set(grade_ids))
        code = [cell_source(cell) for cell in cells if cell.get("cell_type") == "code"]
        stubs = sum(_STUB in source for source in code)
        is_written = any(_DEFINING.search(each) for each in code if _STUB not in each)
    if is_written and (is_right or shared):
        return 0 if is_right else 1, -shared, stubs, False
    return 2 if is_right else 3, -shared, stubs, not is_written


def companions(folder: Path) -> dict[str, bytes]:
    """The files beside the notebook that nbgrader's exchange needs, made valid.

    A missing or unreadable file of one student would end `nbgrader release_feedback` for everyone:
    in its place stand an empty time and a random secret.
    """
    found = {}
    for name in () if is_linked(folder) else (_STAMP, _SECRET):
        with suppress(SubmissionFileError, UnicodeDecodeError):
            data = regular_bytes(folder / name, _COMPANION_CAP)
            data.decode()
            found[name] = data
    if time_of(folder) is None:
        found[_STAMP] = b""
    return {_SECRET: f"{uuid4().hex}{uuid4().hex}".encode(), **found}


def time_of(folder: Path) -> datetime | None:
    """The time of submission in UTC, from a time and a zone name or offset, as the exchange writes.

    None for anything else that a student put there. Raises KitError without nbgrader's libraries.
    """
    if is_linked(folder):
        return None
    try:
        text = regular_bytes(folder / _STAMP, 200).decode("utf-8", "replace").strip()
    except SubmissionFileError:
        return None
    try:
        from dateutil import parser, tz  # type: ignore[import-untyped]
    except ImportError:
        raise KitError(
            "nbgrader's times need its libraries: type `pip install 'course-grader[instructor]'`"
        ) from None
    try:
        date, _, zone = text.rpartition(" ")
        known = tz.gettz(zone) if _ZONE.fullmatch(zone) else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library warns of each unknown zone
            moment: datetime = parser.parse(date if known else text)
        if known:
            moment = moment.replace(tzinfo=known)
        if moment.tzinfo is None:
            return moment
        return moment.astimezone(timezone.utc).replace(tzinfo=None)
    except Exception:  # noqa: BLE001 - the library fails in many ways
        return None
