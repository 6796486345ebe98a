"""`grade release github`: writes a repository that grades itself."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from grader.channels.github import IGNORED, WORKFLOW, visible_points, workflow
from grader.channels.project import install_torch
from grader.channels.student_copy import student_files
from grader.command.course import authors_course
from grader.command.output import console, short_path, write_file
from grader.show.workspace import handed_out
from grader.types.errors import CourseError, KitError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Write a folder to push as a template repository: the student's copy and a workflow that
    runs the visible checks. It has no hidden checks and no solutions.
    """
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: COURSE-github")


def run(args: argparse.Namespace) -> int:
    """Write the repository's files; other files in the folder stay."""
    course = authors_course(args)
    out: Path = args.out or Path(f"{course.name}-github")
    files = student_files(course, is_repository=True)
    points = [
        (stage, visible_points(files[stage.place(stage.check_file)].decode()))
        for stage in course.stages
        if stage.visible
    ]
    if not points:
        raise CourseError("course.toml: no stage has `visible` checks, so there is nothing to run")
    torch = install_torch(course, files["constraints.txt"])
    files[WORKFLOW] = workflow(course, points, torch).encode()
    files[".gitignore"] = IGNORED.encode()
    entries = (
        [entry.name for entry in out.iterdir() if entry.name != ".git"] if out.is_dir() else []
    )
    if entries and not (out / WORKFLOW).is_file():
        raise KitError(f"{out}: is not empty: choose a new folder with --out")
    for name, data in files.items():
        write_file(out / name, data)
    place = shlex.quote(short_path(out))
    push = "git init; git add -A; git commit -m 'The assignment'"
    steps = [("Go there:", f"cd {place}"), ("Make it a repository:", push)]
    shown = [WORKFLOW, f"and {len(files) - 1} other files"]
    console(args).print(handed_out(short_path(out), shown, [], steps), end="")
    return 0
