"""`grade release student`: what students install whose other checks stay with the instructor."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from grader.command.output import console, short_path
from grader.read.bundle import bundle_files, zipped
from grader.read.files import write_whole
from grader.read.workspace import locate_whole_course
from grader.types.errors import KitError


def add_parser(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `grade release student`."""
    parser = kinds.add_parser(
        "student",
        help="a zip for students: stubs, the grader, hints and visible checks",
        description="Write a zip that students unzip and install: the stubs, the grader, the hints "
        "and the checks that course.toml calls visible. No solution, no other check and no "
        "misconception is in it.",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE.zip", help="default: named by the course, here"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the zip and say what is in it."""
    from grader.show.workspace import notices

    course = locate_whole_course(args.course)
    top = f"{course.name}-student"
    path: Path = args.out or Path(f"{top}.zip")
    if path.is_dir():
        raise KitError(f"{path}: is a folder: name a file, as in {path / top}.zip")
    data = zipped(bundle_files(course), top)
    try:
        write_whole(path, data)
    except OSError as error:
        raise KitError(f"{path}: cannot be written: {error.strerror}") from None
    without = [stage.slug for stage in course.stages if not stage.visible]
    visible = sum(len(stage.visible) for stage in course.stages)
    what = f"{len(course.stages)} stages and {visible} visible checks"
    said = [
        f"Written: {short_path(path)}, with {what}.",
        "No solution, no other check and no misconception is in it.",
    ]
    if without:
        said.append(f"No check is visible of: {', '.join(without)}.")
    said.append(
        f"Students unzip it and read {shlex.quote(top)}/README.md. Look at the visible checks "
        "yourself first: whatever they compare with is there to be read."
    )
    console(args).print(notices(said), end="")
    return 0
