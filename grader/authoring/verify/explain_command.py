"""`grade verify --explain`: shows how the course explains its known wrong answers."""

from __future__ import annotations

import argparse

from grader.authoring.mutants.command import show_report
from grader.command.grade import chosen_stages, lanes
from grader.command.output import stage_bar
from grader.read.workspace import locate_whole_course


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
    return show_report(args, report, explain_screen)
