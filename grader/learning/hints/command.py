"""`grade hint [STAGE] [N]`: asks a question, then gives its answer, then asks the next one."""

from __future__ import annotations

import argparse
from dataclasses import replace

from grader.command.output import complain, console
from grader.learning.hints.ladder import open_hints
from grader.learning.hints.turn import Turn, chosen_turn, last_turn, next_turn
from grader.learning.hints.types import Part
from grader.read.course_file import find_stage
from grader.read.progress import recall_present, update_progress
from grader.read.workspace import current_stage, locate_workspace
from grader.types.course import Stage
from grader.types.errors import KitError, ProgressError
from grader.types.progress import Progress
from grader.types.report import Status
from grader.types.workspace import Workspace


def add_options(parser: argparse.ArgumentParser) -> None:
    """Show the next hint for a stage: first its question, the next time its answer. If the last run
    named your mistake, the hint about that mistake comes first. `grade` remembers what you have
    seen.
    """
    parser.add_argument("stage", nargs="?", metavar="STAGE", help="default: your current stage")
    parser.add_argument(
        "number", nargs="?", metavar="N", help="show a hint that you have seen before"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--again", action="store_true", help="repeat the last hint")
    which.add_argument(
        "--all", action="store_true", help="show all hints of a stage that you have passed"
    )


def run(args: argparse.Namespace) -> int:
    """Print one hint, even if the progress cannot be saved."""
    from grader.learning.hints.screen import hint, ladder

    workspace = locate_workspace(args.course)
    found = recall_present(workspace)
    progress = found.progress
    words = [word for word in (args.stage, args.number) if word is not None]
    names = [word for word in words if not word.isdecimal()]
    numbers = [int(word) for word in words if word.isdecimal()]  # first in `grade hint 2`
    if len(names) > 1 or len(numbers) > 1:
        first = workspace.course.stages[0].slug
        raise KitError(f"name one stage and one number, as in `grade hint {first} 2`")
    stage = find_stage(workspace.course, names[0]) if names else current_stage(workspace, progress)
    asked = numbers[0] if numbers else None
    hints = open_hints(stage)
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
    if asked is not None:
        turn = chosen_turn(hints, known, asked)
    else:
        turn = (last_turn if args.again else next_turn)(hints, known)
    skips = turn.number > known.rungs + 1 and asked is not None and not known.is_open
    unsaved = _remember(workspace, stage, None if skips else turn)
    if skips and not unsaved:
        raise KitError(
            f"hint {asked} comes after hint {known.rungs + 1}: `grade hint {stage.slug}` shows it"
        )
    if unsaved:  # the answer would never come
        turn = replace(turn, part=Part.WHOLE)
    repair = known.repair if known.status is Status.FAILED else ""  # of the present text
    console(args).print(hint(stage, hints, turn, is_open=known.is_open, repair=repair), end="")
    if trouble := unsaved or found.note:
        complain(trouble)
    return 0


def _remember(workspace: Workspace, stage: Stage, turn: Turn | None) -> str:
    """Remember that `turn` was shown, if it was; returns what went wrong, or ""."""

    def change(now: Progress) -> Progress:
        return turn.remembered(now, stage.slug) if turn else now

    try:
        return update_progress(workspace.root, change).note
    except ProgressError as error:
        return str(error)
