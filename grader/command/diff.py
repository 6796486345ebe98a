"""`grade diff [STAGE]`: what the learner has changed in a file since it was a stub."""

from __future__ import annotations

import argparse
import sys

from grader.command.output import console, short_path
from grader.read.course_file import find_stage
from grader.read.exercises import began_from, read_work, text_of
from grader.read.progress import read_progress
from grader.read.workspace import current_stage, locate_workspace
from grader.types.course import Stage
from grader.types.errors import KitError, ProgressError
from grader.types.progress import Progress
from grader.types.workspace import Workspace


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `grade diff`."""
    parser = commands.add_parser(
        "diff",
        help="what you have changed",
        description="Show what you have changed in a file since it was a stub.",
    )
    parser.add_argument("stage", nargs="?", metavar="STAGE", help="default: where you are now")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the difference; 0 whether there is one or not."""
    from grader.show.diff import diff

    workspace = locate_workspace(args.course)
    stage = find_stage(workspace.course, args.stage) if args.stage else _current(workspace)
    file = workspace.file(stage)
    work, name = read_work(file), short_path(file)
    if work is None:
        raise KitError(f"{name}: is not there: `grade reset {stage.slug}` puts it back")
    now = text_of(work)
    if now is None:
        raise KitError(f"{name}: is not UTF-8: have your editor save it as UTF-8")
    console(args).print(diff(name, began_from(workspace, stage), now), end="")
    return 0


def _current(workspace: Workspace) -> Stage:
    """The stage that the learner is at, as far as that is remembered."""
    try:
        found = read_progress(workspace.root)
        progress, trouble = found.progress, found.note
    except ProgressError as error:
        progress, trouble = Progress(), str(error)
    if trouble:
        print(f"grade: {trouble}", file=sys.stderr)
    return current_stage(workspace, progress)
