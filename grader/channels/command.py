"""`grade release WHAT`: writes what an instructor gives to students or to a grading system."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from grader.channels import github_command, gradescope_command, points_command, student_command
from grader.channels.proven import is_proven
from grader.classes.nbgrader import release_command as nbgrader_command
from grader.command.output import add_common_options, complain
from grader.read.workspace import locate_whole_course
from grader.types.course import Course


def add_options(parser: argparse.ArgumentParser) -> None:
    """Write the files for students or for a grading system, from course.toml, solutions/ and
    tests/. You can rerun it at any time.
    """
    kinds = parser.add_subparsers(metavar="what", required=True)
    for module in (
        nbgrader_command,
        student_command,
        gradescope_command,
        github_command,
        points_command,
    ):
        module.add_parser(kinds)
    for name, kind in kinds.choices.items():
        add_common_options(kind)
        if name != "canvas":  # it releases scores, and no file of the course
            kind.set_defaults(run=partial(_release, kind.get_default("run")))


def _release(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Run the command, and warn if what it has written is not proven."""
    code = run(args)
    warn_if_unproven(locate_whole_course(args.course))
    return code


def warn_if_unproven(course: Course) -> None:
    """Print a warning if the present version of the course is not proven."""
    if not is_proven(course):
        complain("warning: this version of the course is not proven: run `grade verify` first")
