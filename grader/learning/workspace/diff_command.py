"""`grade diff [STAGE]`: shows what you have changed in a stub."""

from __future__ import annotations

import argparse

from grader.command.output import console, short_path
from grader.command.stage import stage_or_current
from grader.learning.workspace.exercises import began_from, read_work, text_of
from grader.read.workspace import locate_workspace
from grader.types.errors import KitError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Show what you have changed in a stage's stub."""
    parser.add_argument("stage", nargs="?", metavar="STAGE", help="default: your current stage")


def run(args: argparse.Namespace) -> int:
    """Print the difference; always 0."""
    from grader.learning.workspace.diff import diff

    workspace = locate_workspace(args.course)
    stage = stage_or_current(workspace, args.stage)
    file = workspace.file(stage)
    work, name = read_work(file), short_path(file)
    if work is None:
        raise KitError(f"{name}: is missing: `grade reset {stage.slug}` restores it")
    now = text_of(work)
    if now is None:
        raise KitError(f"{name}: is not UTF-8: save it as UTF-8")
    console(args).print(diff(name, began_from(workspace, stage), now), end="")
    return 0
