"""`grade preview STAGE`: shows an author what learners and instructors will see of a stage."""

from __future__ import annotations

import argparse
import io
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from grader.command.course import authors_course
from grader.command.output import console, short_path, stage_bar, write_file
from grader.read.course_file import find_stage

if TYPE_CHECKING:
    from grader.show.screen import Screen


def add_options(parser: argparse.ArgumentParser) -> None:
    """Show what others will see of a stage: the stub, the first screen, the failure screen of each
    misconception, the hints, its section of the notebook and its part of a class report.
    """
    parser.add_argument("stage", metavar="STAGE", help="the stage's slug or number")
    parser.add_argument(
        "--out", type=Path, metavar="FILE.html", help="write one page of HTML instead"
    )


def run(args: argparse.Namespace) -> int:
    """Print the parts, or write the page. Raises KitError."""
    from rich.text import Text

    from grader.authoring.preview.parts import preview

    course = authors_course(args)
    stage = find_stage(course, args.stage)
    with stage_bar(args) as progress:
        parts = list(preview(course, stage, progress))
    if args.out is not None:
        from grader.authoring.preview.page import preview_page

        write_file(args.out, preview_page(stage, parts, _drawn))
        print(f"written: {short_path(args.out)}")
        return 0
    terminal = console(args)
    terminal.course = ""  # a learner need not say which
    for group, own in groupby(parts, key=lambda part: part.group):
        for part in own:
            terminal.print()
            terminal.print(Text(f"{group}: {part.title}", "bold reverse"))
            terminal.print(part.screen)
    return 0


def _drawn(screen: Screen) -> str:
    """A screen as HTML, as a terminal of 80 columns shows it."""
    from rich.console import Console

    terminal = Console(
        record=True, width=80, file=io.StringIO(), force_terminal=True, color_system="standard"
    )
    terminal.print(screen, end="")
    return terminal.export_html(inline_styles=True, code_format="{code}")
