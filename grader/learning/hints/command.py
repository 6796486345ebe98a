"""`grade hint [STAGE] [N]`: shows one more hint each time, first the one about your mistake."""

from __future__ import annotations

import argparse
import sys

from grader.command.output import console
from grader.learning.hints.ladder import read_hints
from grader.read.course_file import find_stage
from grader.read.progress import recall_present, update_progress
from grader.read.workspace import current_stage, locate_workspace
from grader.types.course import Stage
from grader.types.errors import KitError, ProgressError
from grader.types.report import Status
from grader.types.workspace import Workspace


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of `grade hint`."""
    parser.description = (
        "Show the next hint for a stage. If the last run named your mistake, the hint about that "
        "mistake comes first. `grade` remembers which hints you have seen."
    )
    parser.add_argument("stage", nargs="?", metavar="STAGE", help="default: your current stage")
    parser.add_argument(
        "number", nargs="?", type=int, metavar="N", help="show a hint that you have seen before"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--again", action="store_true", help="repeat the last hint")
    which.add_argument(
        "--all", action="store_true", help="show all hints of a stage that you have passed"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print one hint, even if the progress cannot be saved."""
    from grader.learning.hints.screen import hint, ladder

    workspace = locate_workspace(args.course)
    found = recall_present(workspace)
    progress, trouble = found.progress, found.note
    word: str | None = args.stage
    asked: int | None = args.number
    if word is not None and word.isdecimal():  # `grade hint 2`
        asked, word = int(word), None
    stage = (
        find_stage(workspace.course, word)
        if word is not None
        else current_stage(workspace, progress)
    )
    hints = read_hints(stage)
    known, total = progress.stage(stage.slug), len(hints.rungs)
    if asked is not None and not 1 <= asked <= total:
        raise KitError(f"{stage.slug} has hints 1 to {total}, and no hint {asked}")
    if args.all:
        if not known.is_open:
            raise KitError(
                f"--all works after you pass: `grade hint {stage.slug}` shows the next hint"
            )
        console(args).print(ladder(hints), end="")
        return 0
    number = asked or (max(1, known.rungs) if args.again else known.next_rung(total))
    advice = known.advice if asked is None and not args.again else None
    skips = asked is not None and asked > known.rungs + 1 and not known.is_open
    trouble = _remember(workspace, stage, known.rungs if skips else number) or trouble
    if skips and not trouble:
        raise KitError(
            f"hint {number} comes after hint {known.rungs + 1}: `grade hint {stage.slug}` shows it"
        )
    speaks_to = advice.text if advice and not advice.given and advice.rung == number else ""
    repair = known.repair if known.status is Status.FAILED else ""  # of the present text
    shown = hint(stage, hints, number, speaks_to, is_open=known.is_open, repair=repair)
    console(args).print(shown, end="")
    if trouble:
        print(f"grade: {trouble}", file=sys.stderr)
    return 0


def _remember(workspace: Workspace, stage: Stage, rung: int) -> str:
    """Remember that hint `rung` was shown; returns what went wrong, or ""."""
    try:
        return update_progress(workspace.root, lambda now: now.with_hint(stage.slug, rung)).note
    except ProgressError as error:
        return str(error)
