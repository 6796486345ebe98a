"""The files that `grade new --course` writes: a new course, with a first stage or none yet."""

from __future__ import annotations

import os
import re
from pathlib import Path

from grader.authoring.new.files import Wanted, planned_stage, quoted, refuse_title, write_new
from grader.read.course_file import FILE_NAME, course_of_text
from grader.read.workspace import nearest_root
from grader.types.course import Course
from grader.types.errors import KitError
from grader.types.resources import filled

# What a course's files import, by the word for it.
LIBRARIES = {"numpy": ("numpy",), "torch": ("torch",), "python": ()}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def new_course(
    root: Path,
    title: str,
    *,
    name: str | None = None,
    library: str = "numpy",
    first: Wanted | None = None,
) -> tuple[Course, tuple[Path, ...]]:
    """Start a course in `root`, an empty or new folder; returns it and its files.

    Its name is made of the folder's by default. `library` is a key of LIBRARIES. Without a `first`
    stage, the course has none yet. Raises KitError; then nothing was written.
    """
    refuse_folder(root)
    refuse_title(title)
    root = root.resolve()
    name = name or name_of(root)
    refuse_name(name)
    text = filled(
        __package__,
        "templates/course.toml",
        name=quoted(name),
        title=quoted(title),
        preload=", ".join(map(quoted, LIBRARIES[library])),
    )
    course = course_of_text(text, root / FILE_NAME)
    files = {
        root / FILE_NAME: text,
        root / "README.md": filled(__package__, "templates/readme.md", title=title),
        root / ".gitignore": ".grade/\n__pycache__/\ndist/\n",
    }
    if first is not None:
        text, _, stage_files = planned_stage(course, text, first)
        course = course_of_text(text, root / FILE_NAME)
        files |= {root / FILE_NAME: text, **stage_files}
    write_new(root, files)
    return course, tuple(files)


def refuse_folder(root: Path) -> None:
    """Raise KitError if no course can start in this folder."""
    if (root / FILE_NAME).exists():
        raise KitError(f"{root}: is a course already: `grade new STAGE` adds to it")
    try:
        if os.listdir(root):
            raise KitError(f"{root}: is not empty: choose a new folder")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise KitError(f"{root}: cannot hold a course: {error.strerror}") from None
    outer = nearest_root(root.resolve())
    if outer is not None:
        raise KitError(f"{root}: is inside the course or workspace {outer}: choose another folder")


def refuse_name(name: str) -> None:
    """Raise KitError if a course may not have this name."""
    if not _NAME.fullmatch(name):
        raise KitError(f"'{name}': name the course with letters, digits, '.', '_' and '-'")


def name_of(root: Path) -> str:
    """A name for the course in a folder: "my course" gives "my-course"."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", root.resolve().name).strip("-._")


def title_of(name: str) -> str:
    """A title made of a name: "half_turn" gives "Half turn"."""
    words = re.sub(r"[-_.]+", " ", name).strip()
    return words[:1].upper() + words[1:]
