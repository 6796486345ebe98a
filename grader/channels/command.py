"""`grade release WHAT`: writes what an instructor gives to students or to a grading system."""

from __future__ import annotations

import argparse

from grader.channels import (
    canvas_command,
    github_command,
    gradescope_command,
    student_command,
)
from grader.classes.nbgrader import release_command as nbgrader_command
from grader.command.output import add_common_options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of `grade release`."""
    parser.description = (
        "Write the files for students or for a grading system, from course.toml, solutions/ and "
        "tests/. You can rerun it at any time."
    )
    kinds = parser.add_subparsers(metavar="what", required=True)
    for module in (
        nbgrader_command,
        student_command,
        gradescope_command,
        github_command,
        canvas_command,
    ):
        module.add_parser(kinds)
    for kind in kinds.choices.values():
        add_common_options(kind)
