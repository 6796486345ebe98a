"""Digests of what verdicts depend on: the engine with its libraries, and each stage.

Equal digests share verdicts and so points. Each is therefore a whole SHA-256: two files that agree
in 64 bits of it can be made in minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from grader.classes.folder.types import Version
from grader.read.dependencies import digest_of, kit_digest
from grader.read.faults import shared_files
from grader.read.kept import library_version
from grader.types.course import Course, Stage
from grader.types.submission import Submission

_NO_MATTER = (
    "root",
    "title",
    "visible",
    "is_exam",
    "formerly",
)  # keys that do not change a stage's verdict


def read_version(course: Course) -> Version:
    """The version of the engine and of every stage of the course. Raises OSError."""
    return Version(_engine(course), {stage.slug: _stage(course, stage) for stage in course.stages})


def content_of(submission: Submission) -> str:
    """A digest of everything in a submission that is run; the name is not part of it."""
    parts: list[bytes] = [(submission.script or "").encode()]
    for name, data in sorted(submission.files.items()):
        parts += [name.encode(), data]
    for cell in submission.cells or ():
        parts.append(cell.encode("utf-8", "surrogatepass"))
    kind = "files" if submission.cells is None else "a notebook"
    return digest_of([*parts, f"{kind}, {len(submission.files)} files".encode()])


def _engine(course: Course) -> str:
    needed = sorted({"pytest", *course.preload})
    libraries = (f"{name} {library_version(name.partition('.')[0])}" for name in needed)
    return digest_of((line.encode() for line in libraries), kit_digest())


def _stage(course: Course, stage: Stage) -> str:
    """A digest of the stage and of all that it requires: their faults may cause its failure."""
    about = course.name, course.preload, course.follow_through, asdict(course.limits)
    parts = [repr(about).encode()]
    for each in (*course.required(stage), stage):
        described = {key: value for key, value in asdict(each).items() if key not in _NO_MATTER}
        parts.append(repr(sorted(described.items())).encode())
        parts += _read([each.solution_file, each.check_file, each.misconceptions_file])
    parts += _read(shared_files(stage.misconceptions_file))
    beside = stage.check_file.parent.glob("*.py")  # which checks may import
    parts += _read(sorted(path for path in beside if not path.name.startswith("test_")))
    return digest_of(parts)


def _read(files: Iterable[Path]) -> Iterator[bytes]:
    for file in files:
        yield file.read_bytes() if file.is_file() else b""
