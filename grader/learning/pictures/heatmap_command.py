"""`grade heatmap [STAGE]`: shows the heatmap of a stage's trace, and writes it as PNG and SVG."""

from __future__ import annotations

import argparse
from pathlib import Path

from grader.command.grade import add_submission
from grader.command.output import console, status_line
from grader.learning.pictures.files import KINDS, write_picture
from grader.learning.pictures.trace_command import chosen_submission, stages_to_try
from grader.learning.pictures.types import Trace
from grader.types.errors import KitError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Show the heatmap of a stage's trace here, and write it as PNG and SVG."""
    parser.add_argument(
        "stage", nargs="?", metavar="STAGE", help="default: the last core stage that draws one"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="BASE",
        help="write BASE.png and BASE.svg (default: heatmap-STAGE here)",
    )
    add_submission(parser)


def run(args: argparse.Namespace) -> int:
    """Print and write a heatmap; 1 if the learner's code does not get that far."""
    from grader.learning.pictures.heatmap import heatmap_screen
    from grader.learning.pictures.trace import stop_screen
    from grader.learning.pictures.tracer import trace
    from grader.run.device import cpu_interpreter

    course, submission = chosen_submission(args)
    stages = sorted(stages_to_try(course, submission, args.stage), key=lambda stage: stage.bonus)
    tried: list[Trace] = []
    with status_line(args), cpu_interpreter(course) as interpreter:
        for stage in stages:
            tried.append(trace(course, stage, submission, interpreter))
            if tried[-1].heatmap is not None:
                break
    last = tried[-1]
    if last.heatmap is None and args.stage is not None:
        if last.stop is None:
            raise KitError(f"the trace of {last.slug} draws no heatmap: `grade trace {last.slug}`")
        console(args).print(stop_screen(last), end="")
        return 1
    for each in tried:
        if each.heatmap is None and each.stop is not None and not each.stop.not_written:
            print(f"  {each.slug} stops early: see `grade trace {each.slug}`.")
    if last.heatmap is None:
        print("  There is nothing to draw yet. `grade` shows what to write next.")
        return 1
    console(args).print(heatmap_screen(last.heatmap), end="")
    base = Path(f"heatmap-{last.slug}")
    if args.out is not None:
        base = args.out / base if args.out.is_dir() else args.out
    if base.suffix.removeprefix(".") in KINDS:
        base = base.with_suffix("")
    for kind in KINDS:
        file = base.with_name(f"{base.name}.{kind}")
        write_picture(last.heatmap, file)
        print(f"  written: {file}")
    return 0
