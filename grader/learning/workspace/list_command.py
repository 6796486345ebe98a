"""`grade list`: shows the stages, what to write in each, and which stages it needs."""

from __future__ import annotations

import argparse

from grader.command.output import complain, console
from grader.read.progress import recall_present
from grader.read.workspace import locate_course, locate_workspace
from grader.types.errors import KitError
from grader.types.progress import Progress


def add_options(parser: argparse.ArgumentParser) -> None:
    """Show the stages, what to write in each, and which stages it needs."""


def run(args: argparse.Namespace) -> int:
    """Print the stages."""
    from grader.learning.workspace.listing import listing

    course, progress = locate_course(args.course), Progress()
    trouble = ""
    try:
        workspace = locate_workspace(args.course)
        course, found = workspace.course, recall_present(workspace)
        progress, trouble = found.progress, found.note
    except KitError:
        pass  # a course without a workspace has a list too
    console(args).print(listing(course, progress), end="")
    if trouble:
        complain(trouble)
    return 0
