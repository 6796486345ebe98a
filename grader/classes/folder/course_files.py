"""The files that another machine needs in order to grade: the course's, the engine's, the pins."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from grader.read.course_file import FILE_NAME
from grader.types.course import Course

_COURSE_FOLDERS = ("solutions", "hints", "tests/checks")
_CONSTRAINTS = "constraints.txt"
_OTHER_FILE = re.compile(r"-c\s+(\S+)")
_ENGINE = Path(__file__).resolve().parents[2]
KIT = _ENGINE / "kit"


def read_course_files(course: Course) -> Iterator[tuple[str, bytes]]:
    """The path, relative to the course's folder, and the bytes of each file that grading needs."""
    yield FILE_NAME, (course.root / FILE_NAME).read_bytes()
    for name in _COURSE_FOLDERS:
        yield from _tree(course.root / name, course.root)


def read_engine_files() -> Iterator[tuple[str, bytes]]:
    """The path and the bytes of each file of the engine: grader/..."""
    yield from _tree(_ENGINE, _ENGINE.parent)


def read_constraints(course: Course) -> bytes:
    """The library versions to install where others grade: constraints.txt of the course, else of
    the kit, in one file. Raises OSError.
    """
    own = course.root / _CONSTRAINTS
    return _whole(own if own.is_file() else KIT / _CONSTRAINTS)


def _whole(file: Path) -> bytes:
    """A constraints file with the files that it names by `-c FILE` in their places."""
    parts = []
    for line in file.read_bytes().splitlines(keepends=True):
        other = _OTHER_FILE.fullmatch(line.decode("utf-8", "replace").strip())
        parts.append(_whole(file.parent / other[1]) if other else line)
    return b"".join(parts)


def _tree(folder: Path, root: Path) -> Iterator[tuple[str, bytes]]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and not path.is_symlink() and path.suffix != ".pyc":
                yield path.relative_to(root).as_posix(), path.read_bytes()
