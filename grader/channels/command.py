"""`grade release WHAT`: writes what an instructor gives to students or to a grading system."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from types import ModuleType

from grader.channels import github_command, gradescope_command, points_command, student_command
from grader.channels.proven import is_proven
from grader.classes.nbgrader import release_command as nbgrader_command
from grader.command.output import add_common_options, complain
from grader.read.workspace import locate_whole_course
from grader.types.course import Course

# What releases files of the course: its module, and its line in the list.
_FILES: dict[str, tuple[ModuleType, str]] = {
    "nbgrader": (nbgrader_command, "make a course for nbgrader: its configuration and source/"),
    "student": (
        student_command,
        "make the student's copy: a zip of stubs, grader, hints and visible checks",
    ),
    "gradescope": (gradescope_command, "make an autograder for Gradescope: a zip to upload there"),
    "github": (
        github_command,
        "make a template repository for GitHub whose workflow grades each push",
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Write the files for students or for a grading system, from course.toml, solutions/ and
    tests/. You can rerun it at any time.
    """
    kinds = parser.add_subparsers(metavar="what, one of")
    parser.set_defaults(run=lambda args: _which(parser))
    for name, (module, about) in _FILES.items():
        kind = kinds.add_parser(name, help=about, description=module.add_options.__doc__)
        module.add_options(kind)
        kind.set_defaults(run=partial(_release, module.run))
    points_command.add_parsers(kinds)
    for kind in kinds.choices.values():
        add_common_options(kind)


def _which(parser: argparse.ArgumentParser) -> int:
    """List what can be released."""
    parser.print_help()
    return 2


def _release(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Run the command, and warn if what it has written is not proven."""
    code = run(args)
    warn_if_unproven(locate_whole_course(args.course))
    return code


def warn_if_unproven(course: Course) -> None:
    """Print a warning if the present version of the course is not proven."""
    if not is_proven(course):
        complain("warning: this version of the course is not proven: run `grade verify` first")
