"""`grade verify --mutants`: shows which small changes of a solution would pass the checks."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from enum import Enum
from typing import Any

from grader.command.grade import chosen_stages, lanes
from grader.command.output import console, stage_bar
from grader.read.workspace import locate_whole_course
from grader.show.screen import Screen
from grader.types.errors import KitError

_INTERRUPTED = 130


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for mutants."""
    parser.add_argument(
        "--mutants", action="store_true", help="change each solution and see if the checks notice"
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="how many processes (default: one per CPU core)"
    )
    parser.add_argument(
        "--needed",
        action="store_true",
        help="with --mutants: also show what each check alone catches",
    )


def run(args: argparse.Namespace) -> int:
    """Run the mutants and print; 0 if each is caught or explained, else 1. Raises KitError."""
    from grader.run.lanes import can_fork

    if not can_fork("cpu"):
        raise KitError(
            "--mutants needs Linux: only there can a process with torch be forked safely"
        )
    from grader.authoring.mutants.screen import mutants_screen
    from grader.authoring.mutants.survivors import try_mutants

    course = locate_whole_course(args.course)
    stages = chosen_stages(course, args.stages)
    with stage_bar(args) as progress:
        report = try_mutants(
            course, stages, lanes=lanes(args.jobs), needed=args.needed, progress=progress
        )
    return show_report(args, report, mutants_screen)


def show_report(args: argparse.Namespace, report: Any, screen: Callable[[Any], Screen]) -> int:
    """Print a report on mutants, on a screen or as JSON; 0 if every stage is sound, else 1."""
    if args.json:
        json.dump(asdict(report, dict_factory=_plain), sys.stdout, indent=2)
        print()
    else:
        console(args).print(screen(report), end="")
    if not report.finished:
        return _INTERRUPTED
    return 0 if all(stage.is_sound for stage in report.stages) else 1


def _plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a report for JSON: of an enumeration the values."""
    return {key: value.value if isinstance(value, Enum) else value for key, value in pairs}
