"""`grade release WHAT`: what an instructor hands to students or to a system that grades them."""

from __future__ import annotations

import argparse

from grader.command import release_channels, release_nbgrader, release_student
from grader.command.output import add_common_options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say what `grade release` is and takes."""
    parser.description = (
        "Write what students or a grading system are given. Each is made from "
        "course.toml, solutions/ and tests/, and may be made again at any time."
    )
    kinds = parser.add_subparsers(metavar="what", required=True)
    for module in (release_nbgrader, release_student, release_channels):
        module.add_parser(kinds)
    for kind in kinds.choices.values():
        add_common_options(kind)
