"""`grade verify --explain`: shows how the course explains its known wrong answers."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from grader.authoring.mutants.command import plain
from grader.command.grade import chosen_stages, lanes
from grader.command.output import console, stage_bar
from grader.read.workspace import locate_whole_course

_INTERRUPTED = 130


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for explanations."""
    parser.add_argument(
        "--explain",
        action="store_true",
        help="show how misconceptions and mutants are explained to learners",
    )
    parser.add_argument(
        "--all", action="store_true", help="with --explain: all mutants, not 40 a stage"
    )


def run(args: argparse.Namespace) -> int:
    """Explain and print; 0 if no misconception gets a wrong name, else 1. Raises KitError."""
    from grader.authoring.verify.explain import explain
    from grader.authoring.verify.explain_screen import explain_screen

    course = locate_whole_course(args.course)
    stages = chosen_stages(course, args.stages)
    with stage_bar(args) as progress:
        report = explain(course, stages, lanes=lanes(args.jobs), every=args.all, progress=progress)
    if args.json:
        json.dump(asdict(report, dict_factory=plain), sys.stdout, indent=2)
        print()
    else:
        console(args).print(explain_screen(report), end="")
    if not report.finished:
        return _INTERRUPTED
    return 0 if all(stage.is_sound for stage in report.stages) else 1
