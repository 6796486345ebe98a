"""`grade solution STAGE`: shows the solution and the reasons for it, after you pass."""

from __future__ import annotations

import argparse

from grader.command.output import complain, console
from grader.learning.hints.ladder import read_hints
from grader.read.course_file import find_stage
from grader.read.progress import read_progress, update_progress
from grader.read.stubs import read_solution
from grader.read.workspace import locate_workspace
from grader.types.errors import KitError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Show the solution of a stage that you have passed, the reasons for it, and what to
    read next.
    """
    parser.add_argument("stage", metavar="STAGE")
    parser.add_argument(
        "--give-up", action="store_true", help="show it before you pass; `grade` remembers this"
    )


def run(args: argparse.Namespace) -> int:
    """Print the solution, but only if the progress that permits it can be read and saved."""
    from grader.learning.hints.screen import aftermath, solution

    workspace = locate_workspace(args.course)
    stage = find_stage(workspace.course, args.stage)
    if workspace.course.is_partial:
        advice = "" if stage.is_exam else ": `grade hint` still helps"
        raise KitError(f"a student's copy has no solutions{advice}")
    code, hints = read_solution(stage), read_hints(stage)
    found = read_progress(workspace.root)
    known, note = found.progress.stage(stage.slug), found.note
    if args.give_up and not known.is_open:
        after = update_progress(workspace.root, lambda now: now.with_surrender(stage.slug))
        known, note = after.progress.stage(stage.slug), note or after.note
    if note:
        complain(note)
    if not known.is_open:
        raise KitError(
            "you get the solution when the stage passes; "
            f"`grade hint {stage.slug}` helps, --give-up shows it now"
        )
    early = known.gave_up and known.passed is None
    screen = console(args)
    screen.print(solution(stage, code, gave_up=early), end="")
    screen.print(aftermath(hints), end="")
    return 0
