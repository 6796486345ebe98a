"""`grade list`: the stages, what there is to write in each and what it builds on."""

from __future__ import annotations

import argparse
import sys

from grader.command.output import console
from grader.read.progress import recall
from grader.read.workspace import locate_course, locate_workspace
from grader.types.errors import KitError
from grader.types.progress import Progress


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say what `grade list` is and takes."""
    parser.description = __doc__
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the stages."""
    from grader.show.listing import listing

    course, progress = locate_course(args.course), Progress()
    trouble = ""
    try:
        workspace = locate_workspace(args.course)
        course, found = workspace.course, recall(workspace.root)
        progress, trouble = found.progress, found.note
    except KitError:
        pass  # a course without a workspace can be looked at too
    console(args).print(listing(course, progress), end="")
    if trouble:
        print(f"grade: {trouble}", file=sys.stderr)
    return 0
