"""What verdicts depend on, as short digests: the engine with its libraries, and each stage."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from grader.read.channels import read_engine_files
from grader.types.course import Course, Stage
from grader.types.ledger import Version
from grader.types.submission import Submission

_LENGTH = 16  # hexadecimal digits: no course has so many versions that two would meet by chance
_NO_MATTER = ("root", "title", "visible")  # to the verdict on a stage
# What the engine's verdicts come from; the rest of it only shows them, or reads other things.
_JUDGING = ("checking.py", "engine.py", "misconceptions.py", "judge/", "run/", "types/")


def read_version(course: Course) -> Version:
    """The version of the engine and of every stage of the course. Raises OSError."""
    return Version(_engine(course), {stage.slug: _stage(course, stage) for stage in course.stages})


def content_of(submission: Submission) -> str:
    """What stands for all that is run of a submission; its name is no part of it."""
    parts: list[bytes] = [(submission.script or "").encode()]
    for name, data in sorted(submission.files.items()):
        parts += [name.encode(), data]
    for cell in submission.cells or ():
        parts.append(cell.encode("utf-8", "surrogatepass"))
    return _digest([*parts, b"a notebook" if submission.cells is not None else b"files"])


def _engine(course: Course) -> str:
    judging = (
        part
        for path, data in sorted(read_engine_files())
        if path.removeprefix("grader/").startswith(_JUDGING)
        for part in (path.encode(), data)
    )
    libraries = [f"{name} {_installed(name)}" for name in sorted({"pytest", *course.preload})]
    about = [f"Python {sys.version_info[0]}.{sys.version_info[1]}", *libraries]
    return _digest([*judging, *(line.encode() for line in about)])


def _installed(module: str) -> str:
    name = module.partition(".")[0]
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _stage(course: Course, stage: Stage) -> str:
    """Of the stage and of all that it requires, whose faults may be the cause of its own."""
    about = course.name, course.preload, course.follow_through, asdict(course.limits)
    parts = [repr(about).encode()]
    for each in (*course.required(stage), stage):
        described = {key: value for key, value in asdict(each).items() if key not in _NO_MATTER}
        parts.append(repr(sorted(described.items())).encode())
        parts += _read([each.solution_file, each.check_file, each.misconceptions_file])
    parts += _read(_shared(stage.check_file.parent))
    return _digest(parts)


def _shared(folder: Path) -> list[Path]:
    """What checks may import from beside them."""
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith("test_"))


def _read(files: Iterable[Path]) -> Iterator[bytes]:
    for file in files:
        yield file.read_bytes() if file.is_file() else b""


def _digest(parts: Iterable[bytes]) -> str:
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.hexdigest()[:_LENGTH]
