"""`grade heatmap [STAGE]`: the heatmap of a stage's trace, in the terminal and as PNG and SVG."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path

from grader.command.output import console, status_line
from grader.command.picture import KINDS, write_picture
from grader.command.trace import add_submission, chosen_submission, stages_to_try
from grader.types.errors import KitError
from grader.types.trace import Trace


def add_options(parser: argparse.ArgumentParser) -> None:
    """Say what `grade heatmap` is and takes."""
    parser.description = "Show the heatmap of a stage's trace here and write it as PNG and SVG."
    parser.add_argument(
        "stage", nargs="?", metavar="STAGE", help="default: the last of the core that draws one"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="BASE",
        help="write BASE.png and BASE.svg (default: heatmap-STAGE here)",
    )
    add_submission(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print and write a heatmap; 1 if the learner's code does not come so far."""
    from grader.show.heatmap import heatmap_screen
    from grader.show.trace import stop_screen
    from grader.trace import traces

    course, submission = chosen_submission(args)
    stages = sorted(stages_to_try(course, args.stage), key=lambda stage: stage.bonus)
    tried: list[Trace] = []
    with status_line(args), closing(traces(course, stages, submission)) as found:
        for trace in found:
            tried.append(trace)
            if trace.heatmap is not None:
                break
    last = tried[-1]
    if last.heatmap is None and args.stage is not None:
        if last.stop is None:
            raise KitError(f"the trace of {last.slug} draws no heatmap: `grade trace {last.slug}`")
        console(args).print(stop_screen(last), end="")
        return 1
    for trace in tried:
        if trace.heatmap is None and trace.stop is not None and not trace.stop.not_written:
            print(f"  {trace.slug} stops early: `grade trace {trace.slug}` shows why.")
    if last.heatmap is None:
        print("  Nothing that you have written draws a heatmap yet. `grade` says what comes next.")
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
