"""`grade release nbgrader`: makes an nbgrader course from this course."""

from __future__ import annotations

import argparse
import glob
import shlex
from pathlib import Path

from grader.classes.nbgrader.course import write_nbgrader_course
from grader.command.course import authors_course
from grader.command.output import console, short_path
from grader.types.errors import KitError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Write nbgrader_config.py and source/ for the assignments of course.toml. Rerun it to
    update them; the gradebook and your own settings stay.
    """
    parser.add_argument(
        "--course-dir", type=Path, metavar="DIR", default=Path(), help="default: this folder"
    )
    parser.add_argument(
        "--kernel",
        action="store_true",
        help="let `nbgrader autograde` run students' code in kernels: slower and unprotected, "
        "instead of in the grader's isolated process",
    )


def run(args: argparse.Namespace) -> int:
    """Write the course and print the next commands. Raises KitError."""
    from grader.show.workspace import handed_out

    course = authors_course(args)
    root: Path = args.course_dir.resolve()
    if glob.escape(str(root)) != str(root):
        raise KitError(
            f"{root}: nbgrader finds no file in a folder with *, ? or [ in its name: rename that "
            "folder, or choose another one with --course-dir"
        )
    done = write_nbgrader_course(root, course, kernel=args.kernel)
    name = "" if root == Path.cwd() else short_path(root)
    steps = [("Go there:", f"cd {shlex.quote(name)}")] if name else []
    for assignment in course.assignments:
        quoted = shlex.quote(assignment.name)
        steps += [
            ("Make the students' version:", f"nbgrader generate_assignment {quoted}"),
            ("Release it to the students:", f"nbgrader release_assignment {quoted}"),
        ]
    files = [file.relative_to(root).as_posix() for file in done.written]
    copies = [file.relative_to(root).as_posix() for file in done.kept]
    console(args).print(handed_out(name, files, copies, steps), end="")
    return 0
