"""The files that another machine needs in order to grade: the course's, the engine's, the pins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from grader.read.course_file import FILE_NAME
from grader.read.workspace import installed_folder
from grader.types.course import Course
from grader.types.errors import KitError

_COURSE_FOLDERS = ("solutions", "hints", "tests/checks")
_CONSTRAINTS = "constraints.txt"


def read_course_files(course: Course) -> Iterator[tuple[str, bytes]]:
    """The path, relative to the course's folder, and the bytes of each file that grading needs."""
    yield FILE_NAME, (course.root / FILE_NAME).read_bytes()
    for name in _COURSE_FOLDERS:
        yield from _tree(course.root / name, course.root)


def read_engine_files() -> Iterator[tuple[str, bytes]]:
    """The path and the bytes of each file of the engine: grader/..."""
    package = Path(__file__).resolve().parents[2]
    yield from _tree(package, package.parent)


def read_constraints(course: Course) -> bytes:
    """The library versions to install where others grade: constraints.txt of the course, else of
    the kit. Raises KitError.
    """
    kit = installed_folder()
    for folder in (course.root, kit.parent, kit / "kit"):
        if (folder / _CONSTRAINTS).is_file():
            return (folder / _CONSTRAINTS).read_bytes()
    raise KitError(
        f"{course.root}: has no {_CONSTRAINTS}: list the versions to install in it, as "
        "`pip freeze` prints them"
    )


def _tree(folder: Path, root: Path) -> Iterator[tuple[str, bytes]]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and not path.is_symlink() and path.suffix != ".pyc":
                yield path.relative_to(root).as_posix(), path.read_bytes()
