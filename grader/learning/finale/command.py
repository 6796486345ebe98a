"""`grade finale [NAME]`: trains a small model with the learner's own code in it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from grader.command.grade import add_device, add_submission
from grader.command.output import console, stage_bar
from grader.learning.finale.programs import Program, all_programs
from grader.learning.pictures.files import write_picture
from grader.learning.pictures.trace_command import chosen_submission
from grader.learning.pictures.types import TracedHeatmap
from grader.read.progress import recall_present
from grader.read.workspace import locate_workspace
from grader.run.stopping import first_interrupt
from grader.tracing import Curves
from grader.types.errors import KitError, close_to, writing
from grader.types.report import Status

if TYPE_CHECKING:
    from grader.learning.finale.training import Moment, Run, Studio
    from grader.show.screen import Screen
    from grader.types.submission import Submission

_SEED = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    """Train a small model with your own code in it, and see what it learns. Ctrl-C stops and keeps
    what was learnt.
    """
    parser.add_argument("name", nargs="?", metavar="NAME", help="only this training (default: all)")
    parser.add_argument("--without", metavar="PART", help="then train again without this part")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("finale"),
        metavar="DIR",
        help="for the pictures (default: finale)",
    )
    parser.add_argument("--seed", type=int, default=_SEED, help="default: 1, the same for all")
    add_device(parser)
    add_submission(parser)


def run(args: argparse.Namespace) -> int:
    """Train, show and draw; 1 if the learner's code does not get that far. Raises KitError."""
    course, submission = chosen_submission(args)
    programs = _chosen(all_programs(course), args.name, args.without)
    from grader.learning.finale.screen import not_passed, trouble
    from grader.learning.finale.training import studio
    from grader.run.failures import AnswerError

    waiting: list[Screen] = []  # until the learner's code works: an error stands alone
    for stage in dict.fromkeys(program.stage for program in programs):
        if args.submission is None:
            known = recall_present(locate_workspace(args.course)).progress.stage(stage.slug)
            if known.status is not Status.PASSED:
                waiting.append(not_passed(stage.slug, known.is_changed))
    with studio(course, args.device) as room, first_interrupt() as is_over:
        for program in programs:
            try:
                _trained(args, room, submission, program, waiting, is_over)
            except AnswerError as error:
                offers = args.submission is None
                message = "" if getattr(error, "not_written", False) else str(error)
                console(args).print(trouble(program.stage.slug, message, offers=offers), end="")
                return 1
            if is_over():
                break
    return 0


def _chosen(programs: tuple[Program, ...], name: str | None, part: str | None) -> list[Program]:
    """The named program or all, as far as they can do without `part`. Raises KitError."""
    if not programs:
        raise KitError("this course has no finale")
    names = [program.name for program in programs]
    if name is not None and name not in names:
        raise KitError(
            f"no '{name}' in the finale{close_to(name, names)}; it has {', '.join(names)}"
        )
    chosen = [program for program in programs if name in (None, program.name)]
    able = [program for program in chosen if part is None or part in program.without]
    if not able:
        parts = sorted({part for program in chosen for part in program.without})
        raise KitError(f"--without {part}: choose one of {', '.join(parts)}")
    return able


def _trained(
    args: argparse.Namespace,
    room: Studio,
    submission: Submission,
    program: Program,
    first: list[Screen],
    is_over: Callable[[], bool],
) -> None:
    """One training, and a second one without a part if that was asked for. Raises AnswerError.

    `first` is printed, and emptied, when the learner's code gives its first result.
    """
    from grader.learning.finale.screen import loss_curves, moment_lines, opening, result
    from grader.learning.finale.training import train

    runs: list[Run] = []
    screen = console(args)
    for without in ("", args.without) if args.without else ("",):
        if is_over():
            return
        first.append(opening(program, without))
        with ExitStack() as bars:
            bar = bars.enter_context(stage_bar(args))
            bar("starting", 0, program.steps)

            def show(moment: Moment) -> None:
                nonlocal bar
                if first or moment.sample or moment.counts:
                    bars.close()  # the bar vanishes: lines are printed in its place
                    screen.print(*first, moment_lines(program, moment), sep="", end="")
                    first.clear()
                    bar = bars.enter_context(stage_bar(args))
                bar(f"loss {moment.loss:.2f}" if moment.loss else "", moment.step, program.steps)

            with room.trainee(program, submission, args.seed, without) as trainee:
                runs.append(train(trainee, program, without, show, is_over))
        screen.print(result(runs, is_last=without == (args.without or "")), end="")
        last = runs[-1]
        if last.losses:
            _write(args.out / f"{last.name}-loss.svg", loss_curves(runs))
        if last.heatmap is not None:
            _write(args.out / f"{last.name}-heatmap.svg", last.heatmap)


def _write(file: Path, picture: TracedHeatmap | Curves) -> None:
    """Write a picture. Raises KitError."""
    with writing(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
    write_picture(picture, file)
    print(f"  written: {file}")
