"""Reads and writes the learner's Progress in `.grade/progress.json`, under a lock, in one step.

An unreadable file is renamed, never overwritten, and a note tells the caller.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from grader.read.dependencies import course_digest, text_digests
from grader.read.files import free_name, write_whole
from grader.read.submission import read_or_refuse
from grader.types.errors import NoSubmissionError, ProgressError
from grader.types.progress import Advice, Progress, StageProgress
from grader.types.report import StageResult, Status
from grader.types.submission import Submission
from grader.types.workspace import Workspace

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

SCHEMA = 1
_FILE = "progress.json"
_MOST = 1e9  # points, hints or attempts


@dataclass(frozen=True)
class Remembered:
    """The progress found, and a note for the learner if the file was faulty."""

    progress: Progress
    note: str = ""


def memory_folder(root: Path) -> Path:
    """The folder with the kit's memory of the learner who works in `root`."""
    return root / ".grade"


def progress_file(root: Path) -> Path:
    """The file with the progress of the learner who works in `root`."""
    return memory_folder(root) / _FILE


def read_progress(root: Path) -> Remembered:
    """The progress in the folder `root`; empty if there is none yet.

    Raises ProgressError for a file that cannot be read, or that a newer version of the kit wrote.
    """
    file = memory_folder(root) / _FILE
    try:
        return Remembered(_load(file))
    except ValueError:
        return update_progress(root, lambda progress: progress)  # sets the file aside
    except OSError as error:
        raise ProgressError(
            f"{file}: cannot be read ({error.strerror}), so your progress is unknown"
        ) from None


def recall(root: Path) -> Remembered:
    """The progress as far as it can be read; the note says what cannot."""
    try:
        return read_progress(root)
    except ProgressError as error:
        return Remembered(Progress(), str(error))


def recall_present(workspace: Workspace) -> Remembered:
    """Like `recall`, without verdicts on earlier texts of the learner's files.

    Verdicts on a notebook's cells stay, because their current text is unknown.
    """
    found = recall(workspace.root)
    if all(stage.status is None for stage in found.progress.stages.values()):
        return found
    try:
        submission = read_or_refuse(workspace.exercises, is_own=True)
        course = workspace.course
        texts = text_digests(course, submission, course_digest(course))
    except NoSubmissionError:
        texts = {}
    return Remembered(found.progress.of(texts, notebooks=True), found.note)


def update_progress(root: Path, change: Callable[[Progress], Progress]) -> Remembered:
    """Apply `change` to the remembered progress, save the result and return it.

    Simultaneous commands wait for each other. Raises ProgressError if the folder or the file cannot
    be read or written.
    """
    folder = memory_folder(root)
    try:
        make_memory_folder(root)
        with _locked(folder):
            file, note = folder / _FILE, ""
            try:
                before = _load(file)
            except ValueError:
                before, note = Progress(), _set_aside(file)
            after = change(before)
            if after != before:
                write_whole(file, json.dumps(to_json(after), indent=1) + "\n")
            return Remembered(after, note)
    except OSError as error:
        raise ProgressError(
            f"{folder}: cannot be written ({error.strerror}), so your progress is not saved"
        ) from None


def remember_results(
    root: Path, results: Sequence[StageResult], submission: Submission, texts: Mapping[str, str]
) -> Remembered:
    """Remember the results of these stages of the learner's submission. Raises ProgressError.

    `texts` are digests of what the verdicts depend on, by slug.
    """
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")

    def with_results(progress: Progress) -> Progress:
        for result in results:
            digest = submission.digest(f"{result.slug}.py")
            progress = progress.with_result(result, digest, now, texts[result.slug])
        return progress

    return update_progress(root, with_results)


def remembered(
    root: Path, results: Sequence[StageResult], submission: Submission, texts: Mapping[str, str]
) -> str:
    """Remember results as `remember_results` does; returns what went wrong, or ""."""
    try:
        return remember_results(root, results, submission, texts).note
    except ProgressError as error:
        return str(error)


def make_memory_folder(root: Path) -> Path:
    """Make the memory folder if needed, with a .gitignore that keeps it out of git. OSError."""
    folder = memory_folder(root)
    folder.mkdir(exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    return folder


def parse_progress(data: Any) -> Progress:
    """The Progress in the data of a progress.json of this schema. Raises ValueError."""
    rest = _table(data)
    if rest.pop("schema", None) != SCHEMA:
        raise ValueError(f"'schema' is not {SCHEMA}")
    stages = _table(rest.pop("stages", {}))
    last_hint = rest.pop("last_hint", None)
    if not isinstance(last_hint, (str, type(None))):
        raise ValueError("'last_hint' is not a stage")
    return Progress({slug: _stage(table) for slug, table in stages.items()}, last_hint, rest)


def to_json(progress: Progress) -> dict[str, Any]:
    """The data for progress.json, ready for `json.dumps`; the inverse of `parse_progress`."""
    return {
        **progress.rest,
        "schema": SCHEMA,
        "last_hint": progress.last_hint,
        "stages": {slug: _stage_json(stage) for slug, stage in progress.stages.items()},
    }


# What a stage's table and that of an advice may hold, with the values that stand for missing ones.
_MORE = ("status", "advice", "rest")  # of a stage, read in other ways
_OF_STAGE = {each.name: each.default for each in fields(StageProgress) if each.name not in _MORE}
_OF_ADVICE = {"rung": 0, "id": "", "text": "", "given": False}


def _stage(data: Any) -> StageProgress:
    rest = _table(data)
    status, advice = rest.pop("status", None), rest.pop("advice", None)
    return StageProgress(
        **_taken(rest, _OF_STAGE),
        status=None if status is None else Status(status),
        advice=None if advice is None else Advice(**_taken(_table(advice), _OF_ADVICE)),
        rest=rest,
    )


def _taken(table: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """These values, out of a table: each of its default's type, or else text. ValueError."""
    found = {}
    for key, default in defaults.items():
        value = table.pop(key, default)
        kind = str if default is None else type(default)
        is_fine = value is default or type(value) in ((int, float) if kind is float else (kind,))
        if not is_fine or (kind in (int, float) and not 0 <= value <= _MOST):
            raise ValueError(f"{key!r} cannot be {value!r}")
        found[key] = float(value) if kind is float else value
    return found


def _stage_json(stage: StageProgress) -> dict[str, Any]:
    """The known values, without empty ones."""
    status, advice = stage.status, stage.advice
    known = vars(stage) | {
        "status": status and status.value,
        "advice": advice and asdict(advice),
        "rest": None,
    }
    return {**stage.rest, **{key: value for key, value in known.items() if value}}


def _table(data: Any) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise ValueError(f"{data!r} is not a table")
    return dict(data)


def _load(file: Path) -> Progress:
    """The progress in `file`. Raises ValueError if it is not valid, OSError, ProgressError."""
    try:
        data = json.loads(file.read_bytes().decode("utf-8"))
        schema = data.get("schema") if isinstance(data, dict) else None
        if isinstance(schema, int) and schema > SCHEMA:
            raise ProgressError(
                f"{file}: was written by a newer version of the kit (schema {schema}): update it"
            )
        return parse_progress(data)
    except FileNotFoundError:
        return Progress()
    except RecursionError:
        raise ValueError("too deep") from None


def _set_aside(file: Path) -> str:
    aside = free_name(file.with_name(f"{file.name}.corrupt"))
    file.rename(aside)
    return f"{file}: is damaged; it is kept as {aside.name}, and a new file was started"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one command at a time run the block, if the file system has locks."""
    with open(folder / "lock", "ab") as file:
        with suppress(OSError):
            _lock(file.fileno())
        yield


if sys.platform == "win32":

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)

else:

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
