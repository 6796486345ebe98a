"""`.grade/progress.json` <-> Progress. Written in one step, under a lock; nothing is lost.

A file that cannot be understood is renamed, never written over: the caller is told in a note.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from grader.read.files import free_name, write_whole
from grader.types.errors import ProgressError
from grader.types.progress import Advice, Progress, StageProgress
from grader.types.report import StageResult, Status
from grader.types.submission import Submission

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

SCHEMA = 1
_FILE = "progress.json"


@dataclass(frozen=True)
class Remembered:
    """What was found, and a note for the learner if something was wrong with the file."""

    progress: Progress
    note: str = ""


def memory_folder(root: Path) -> Path:
    """Where the kit keeps what it remembers of whoever works in the course's folder `root`."""
    return root / ".grade"


def read_progress(root: Path) -> Remembered:
    """What is remembered in the course's folder `root`; nothing yet is an empty Progress.

    Raises ProgressError for a file that cannot be read, or that a newer kit has written.
    """
    file = memory_folder(root) / _FILE
    try:
        return Remembered(_load(file))
    except ValueError:
        return update_progress(root, lambda progress: progress)  # sets the file aside
    except OSError as error:
        raise ProgressError(
            f"{file}: cannot be read ({error.strerror}), so it is not known what you have done"
        ) from None


def recall(root: Path) -> Remembered:
    """What is remembered, as far as it can be read; what cannot be is told in the note."""
    try:
        return read_progress(root)
    except ProgressError as error:
        return Remembered(Progress(), str(error))


def update_progress(root: Path, change: Callable[[Progress], Progress]) -> Remembered:
    """Remember `change` of what is remembered now, and return that.

    Commands that run at the same time wait for each other. Raises ProgressError for a folder or
    file that cannot be read or written.
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
            f"{folder}: cannot be written ({error.strerror}), so nothing is remembered"
        ) from None


def remember_results(
    root: Path, results: Sequence[StageResult], submission: Submission
) -> Remembered:
    """Remember how these stages of the learner's submission were graded. Raises ProgressError."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")

    def with_results(progress: Progress) -> Progress:
        for result in results:
            digest = submission.digest(f"{result.slug}.py")
            progress = progress.with_result(result, digest, now)
        return progress

    return update_progress(root, with_results)


def make_memory_folder(root: Path) -> Path:
    """The folder, made if it is not there, with a .gitignore that keeps it out of git. OSError."""
    folder = memory_folder(root)
    folder.mkdir(exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    return folder


def parse_progress(data: Any) -> Progress:
    """The Progress of the data of a progress.json of this schema. Raises ValueError."""
    rest = _table(data)
    if rest.pop("schema", None) != SCHEMA:
        raise ValueError(f"'schema' is not {SCHEMA}")
    stages = _table(rest.pop("stages", {}))
    last_hint = rest.pop("last_hint", None)
    if not isinstance(last_hint, (str, type(None))):
        raise ValueError("'last_hint' is not a stage")
    return Progress({slug: _stage(table) for slug, table in stages.items()}, last_hint, rest)


def to_json(progress: Progress) -> dict[str, Any]:
    """What progress.json holds, ready for `json.dumps`; `parse_progress` takes it back."""
    return {
        **progress.rest,
        "schema": SCHEMA,
        "last_hint": progress.last_hint,
        "stages": {slug: _stage_json(stage) for slug, stage in progress.stages.items()},
    }


def _stage(data: Any) -> StageProgress:
    rest = _table(data)
    status, advice = rest.pop("status", None), rest.pop("advice", None)
    return StageProgress(
        rungs=_count(rest, "rungs"),
        status=None if status is None else Status(status),
        score=float(_taken(rest, "score", (int, float), 0.0)),
        best=float(_taken(rest, "best", (int, float), 0.0)),
        attempts=_count(rest, "attempts"),
        digest=_taken(rest, "digest", str, None),
        passed=_taken(rest, "passed", str, None),
        gave_up=_taken(rest, "gave_up", bool, False),
        advice=None if advice is None else _advice(_table(advice)),
        rest=rest,
    )


def _advice(data: dict[str, Any]) -> Advice:
    return Advice(
        rung=_count(data, "rung"),
        id=_taken(data, "id", str, ""),
        text=_taken(data, "text", str, ""),
        given=_taken(data, "given", bool, False),
    )


def _taken(table: dict[str, Any], key: str, kind: Any, default: Any) -> Any:
    value = table.pop(key, default)
    is_a_bool_in_disguise = isinstance(value, bool) and kind is not bool
    if value is not default and (is_a_bool_in_disguise or not isinstance(value, kind)):
        raise ValueError(f"{key!r} cannot be {value!r}")
    return value


def _count(table: dict[str, Any], key: str) -> int:
    value: int = _taken(table, key, int, 0)
    if value < 0:
        raise ValueError(f"{key!r} is less than 0")
    return value


def _stage_json(stage: StageProgress) -> dict[str, Any]:
    """Only what there is to say."""
    known = {
        "rungs": stage.rungs,
        "status": stage.status and stage.status.value,
        "score": stage.score,
        "best": stage.best,
        "attempts": stage.attempts,
        "digest": stage.digest,
        "passed": stage.passed,
        "gave_up": stage.gave_up,
        "advice": stage.advice and asdict(stage.advice),
    }
    return {**stage.rest, **{key: value for key, value in known.items() if value}}


def _table(data: Any) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise ValueError(f"{data!r} is not a table")
    return dict(data)


def _load(file: Path) -> Progress:
    """What `file` holds. Raises ValueError if it cannot be understood, OSError, ProgressError."""
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
    return f"{file}: cannot be understood; it is kept as {aside.name}, and a new one is begun"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One command at a time. Where the file system knows no locks, nobody waits."""
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
