"""`grade diff [STAGE]`: shows what you have changed in a stub."""

from __future__ import annotations

import argparse

from grader.command.course import stage_or_current
from grader.command.output import console, short_path
from grader.learning.workspace.exercises import began_from, read_text
from grader.read.workspace import locate_workspace


def add_options(parser: argparse.ArgumentParser) -> None:
    """Show what you have changed in a stage's stub."""
    parser.add_argument("stage", nargs="?", metavar="STAGE", help="default: your current stage")


def run(args: argparse.Namespace) -> int:
    """Print the difference; always 0."""
    from grader.learning.workspace.diff import diff

    workspace = locate_workspace(args.course)
    stage = stage_or_current(workspace, args.stage)
    now, stub = read_text(workspace, stage), began_from(workspace, stage)
    console(args).print(diff(short_path(workspace.file(stage)), stub, now), end="")
    return 0
