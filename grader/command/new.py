"""`grade new STAGE --title "..."`: the files of one more stage, or a course of your own."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from grader.command.output import short_path
from grader.read.course_file import FILE_NAME
from grader.read.new_stage import new_course, new_stage
from grader.read.workspace import is_workspace, locate_whole_course, nearest_root
from grader.types.course import Course
from grader.types.errors import KitError


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `grade new`."""
    parser.description = (
        "Write the files of a new stage, which runs as it is: the lines that say TODO: "
        "are yours, and `grade verify` lists them. Without STAGE: start a course in the folder "
        "that --course names. Nothing is ever written over."
    )
    parser.add_argument("stage", nargs="?", metavar="STAGE", help="its slug, such as half_turn")
    parser.add_argument("--title", metavar="TEXT", help="what the stage or the course is called")
    parser.add_argument("--after", metavar="SLUG", help="the stage before it (default: the last)")
    parser.add_argument("--bonus", action="store_true", help="a bonus stage, outside of the core")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write a stage or a course, and say what was written and what to type next."""
    if args.stage is None:
        return _new_course(args)
    course = _authors_course(args.course)
    title = _title(args, f"grade new {args.stage}")
    stage, files = new_stage(course, args.stage, title, after=args.after, bonus=args.bonus)
    _tell(course.root, files, added_to=FILE_NAME)
    where = "" if args.course is None else f" --course {shlex.quote(short_path(course.root))}"
    print(f"Its table says {stage.points:g} points and no stage that it builds on: is that so?")
    print(f"What is left to do:    grade verify {stage.slug}{where}")
    print(f"As a learner sees it:  grade {stage.slug}{where}")
    print(f"After a change in solutions/:  grade stubs{where}")
    return 0


def _new_course(args: argparse.Namespace) -> int:
    if args.course is None:
        raise KitError("name the stage, or start a course: `grade new --course DIR --title TEXT`")
    for option in ("after", "bonus"):
        if getattr(args, option):
            raise KitError(f"--{option} is for a stage, and none is named: `grade new STAGE`")
    title = _title(args, f"grade new --course {shlex.quote(str(args.course))}")
    course, files = new_course(args.course, title)
    _tell(course.root, files)
    print(f"Try it:              cd {shlex.quote(short_path(course.root))} && grade verify")
    print('Then the next stage: grade new STAGE --title "..."')
    return 0


def _authors_course(given: Path | None) -> Course:
    """The course to add to: never one that was merely found because there is no other. KitError."""
    if given is not None and not given.exists():
        raise KitError(f"{given}: is not there: without STAGE, `grade new` starts a course in it")
    nearest = nearest_root(Path.cwd())
    if given is None and (nearest is None or is_workspace(nearest)):
        raise KitError("you are in no course's folder: go there, or name it with --course DIR")
    return locate_whole_course(given or nearest)


def _title(args: argparse.Namespace, words: str) -> str:
    if args.title is None:
        raise KitError(f'a title is missing: {words} --title "Half a turn"')
    title: str = args.title
    return title


def _tell(root: Path, files: Sequence[Path], added_to: str = "") -> None:
    """Name the files as they are called in the course's folder, and that if it is another one."""
    if root != Path.cwd():
        print(f"In {short_path(root)}:")
    if added_to:
        print(f"added to: {added_to}")
    for file in files:
        print(f"written: {file.relative_to(root).as_posix()}")
    print()
