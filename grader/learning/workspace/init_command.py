"""`grade init [DIR]`: makes a folder to work in from the installed course, without a clone."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from grader.command.output import console, short_path
from grader.learning.workspace.scaffold import has_lost_its_memory, make_workspace
from grader.read.course_file import FILE_NAME
from grader.read.workspace import (
    course_of,
    has_spoilt_mark,
    installed_course,
    is_workspace,
    locate_course,
    nearest_root,
    own_course,
)
from grader.types.course import Course
from grader.types.errors import KitError

_STUCK = ("Stuck?", "grade hint")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Make a folder to work in: the files to write, a README and settings for your editor. In such
    a folder, it restores missing files. It never overwrites a file. It uses a folder with other
    files only if you type `grade init .` there, or if that is a git repository.
    """
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="DIR",
        help="default: a new folder named after the course",
    )


def run(args: argparse.Namespace) -> int:
    """Make or restore a workspace and print the next commands."""
    from grader.show.screen import count
    from grader.show.workspace import done

    root = args.folder or nearest_root(Path.cwd())
    if root is None:
        here, course = Path.cwd(), locate_course(args.course)
        root = here if has_lost_its_memory(here, course) else Path(course.name)
    root = root.resolve()
    if (root / FILE_NAME).is_file():
        raise KitError(
            f"{root} is the course's own folder: type `grade` here, or `grade init DIR` elsewhere"
        )
    python = sys.executable if os.access(sys.executable or "", os.X_OK) else None
    made = make_workspace(root, _course(args.course, root), python)
    name = "" if root == Path.cwd() else short_path(root)
    watch = ("Grade at each save:", "grade watch")
    steps = [("Go there:", f"cd {shlex.quote(name)}"), watch] if name else [watch, _STUCK]
    if made.was_there:
        is_missing = "Restored the missing files:" if made.files else "Nothing is missing."
        said, files = f"{name or 'This folder'} is already a workspace. {is_missing}", made.files
    else:
        exercises = count(sum(file.startswith("exercises/") for file in made.files), "file")
        what = f"exercises/ with {exercises} to work in, README.md, settings for editors."
        said, files = f"Made {name or 'a workspace here'}: {what}", ()
    args.course = None  # the folder knows its course
    console(args).print(done(said, files, steps), end="")
    return 0


def _course(given: Path | None, root: Path) -> Course:
    """The course for the workspace: its own if `root` is one already. Raises KitError.

    Prefers an installed student's copy, because students may delete the unzipped folder.
    """
    if given is None and is_workspace(root):
        return own_course() if has_spoilt_mark(root) else course_of(root)
    course = locate_course(given)
    if given is None and course.is_partial:
        with suppress(KitError):
            installed = installed_course(course.name)
            if installed.is_partial:
                return installed
    return course
