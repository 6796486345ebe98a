"""The course of an author's or an instructor's command."""

from __future__ import annotations

import argparse
from pathlib import Path

from grader.command.output import complain
from grader.read.workspace import locate_whole_course, nearest_root
from grader.types.course import Course


def authors_course(args: argparse.Namespace) -> Course:
    """The whole course, which the command names if this folder has none. Raises KitError."""
    course = locate_whole_course(args.course)
    if args.course is None and nearest_root(Path.cwd()) is None:
        complain(
            f"there is no course in this folder, so this takes the one in {course.root}; to take "
            "another, add --course DIR"
        )
    return course
