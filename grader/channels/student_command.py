"""`grade release student`: makes the student's copy, without the hidden checks."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from grader.channels.student_copy import student_files, zipped
from grader.command.course import authors_course
from grader.command.output import console, short_path, write_file
from grader.show.screen import count
from grader.show.workspace import notices
from grader.types.errors import KitError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Write a zip that students unzip and install: the stubs, the grader, the hints and the
    checks that course.toml makes visible. It has no solutions, no other checks and no
    misconceptions.
    """
    parser.add_argument("--out", type=Path, metavar="FILE.zip", help="default: COURSE-student.zip")


def run(args: argparse.Namespace) -> int:
    """Write the zip and print what it holds."""
    course = authors_course(args)
    top = f"{course.name}-student"
    path: Path = args.out or Path(f"{top}.zip")
    if path.is_dir():
        raise KitError(f"{path}: is a folder: name a file, such as {path / top}.zip")
    write_file(path, zipped(student_files(course), top))
    without = [stage.slug for stage in course.stages if not stage.visible]
    visible = sum(len(stage.visible) for stage in course.stages)
    what = f"{count(len(course.stages), 'stage')} and {count(visible, 'visible check')}"
    sentences = [
        f"Written: {short_path(path)}, with {what}.",
        "It has no solutions, no other checks and no misconceptions.",
    ]
    if without:
        sentences.append(f"Stages without visible checks: {', '.join(without)}.")
    sentences.append(
        f"Students unzip it and follow {shlex.quote(top)}/README.md. Read the visible checks "
        "yourself first: students can read everything in them, expected values too."
    )
    console(args).print(notices(sentences), end="")
    return 0
