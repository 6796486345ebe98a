"""`grade verify --mutants`: would a small change of a solution pass the checks?"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import Enum
from typing import Any

from grader.command.grade import chosen_stages
from grader.command.output import console, is_plain
from grader.read.workspace import locate_whole_course
from grader.types.errors import KitError

_INTERRUPTED = 130


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that speak of mutants."""
    parser.add_argument(
        "--mutants", action="store_true", help="change each solution and see whether checks notice"
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="mutants at a time (default: one a processor core)"
    )
    parser.add_argument(
        "--needed", action="store_true", help="tell what each check alone catches, too"
    )


def run(args: argparse.Namespace) -> int:
    """Try the mutants and print; 0 if each is caught or explained, else 1. Raises KitError."""
    from grader.mutants import try_mutants
    from grader.show.mutants import mutants_screen

    if sys.platform == "win32":
        raise KitError("--mutants needs a system that can fork, such as Linux")
    course = locate_whole_course(args.course)
    stages = chosen_stages(course, args.stages)
    lanes = max(1, args.jobs or len(os.sched_getaffinity(0)))
    with _bar(args) as progress:
        report = try_mutants(course, stages, lanes=lanes, needed=args.needed, progress=progress)
    if args.json:
        json.dump(asdict(report, dict_factory=_plain), sys.stdout, indent=2)
        print()
    else:
        console(args).print(mutants_screen(report), end="")
    if not report.finished:
        return _INTERRUPTED
    return 0 if all(stage.is_sound for stage in report.stages) else 1


def _plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value.value if isinstance(value, Enum) else value for key, value in pairs}


@contextmanager
def _bar(args: argparse.Namespace) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal's stderr for the stage at hand; it starts no thread."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    errors = Console(stderr=True)
    if is_plain(args) or not errors.is_terminal:
        yield lambda slug, done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=errors, auto_refresh=False, transient=True) as progress:
        task = progress.add_task("", total=None)

        def tell(slug: str, done: int, total: int) -> None:
            progress.update(task, description=slug, completed=done, total=total, refresh=True)

        yield tell
