"""`grade class --nbgrader DIR ASSIGNMENT`: grades all that a class has handed in."""

from __future__ import annotations

import argparse
import os
import secrets
from pathlib import Path

from grader.command.grade import DEVICES
from grader.command.output import console, progress_bar
from grader.read.workspace import locate_whole_course
from grader.types.gradebook import Graded


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `grade class`."""
    parser = commands.add_parser(
        "class",
        help="grade what a class has handed in",
        description="Grade submitted/ of an nbgrader course and write autograded/ and the "
        "gradebook, so that nbgrader goes on from there: generate_feedback, export, formgrader.",
    )
    parser.add_argument(
        "--nbgrader", type=Path, metavar="DIR", required=True, help="the nbgrader course"
    )
    parser.add_argument("assignment", metavar="ASSIGNMENT")
    parser.add_argument("--force", action="store_true", help="also those that are graded already")
    parser.add_argument("--device", choices=DEVICES, default="auto", help="default: auto")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="so many at a time (default: one a processor core)"
    )
    parser.add_argument("--seed", type=int, help="what the checks draw their inputs from")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Grade and print what was odd and a summary; 0 unless somebody has to look at a cell."""
    from grader.classroom import NbgraderClass
    from grader.engine import with_engine
    from grader.show.classroom import summary

    course = locate_whole_course(args.course)
    work = NbgraderClass(args.nbgrader.resolve(), args.assignment, course)
    students = work.students(force=args.force)
    seed = secrets.randbelow(1 << 31) if args.seed is None else args.seed
    lanes = max(1, args.jobs or len(os.sched_getaffinity(0)))
    results: list[Graded] = []
    if students:
        with progress_bar(args, work.assignment, len(students)) as advance:

            def tell(result: Graded) -> None:
                results.append(result)
                advance()

            with_engine(
                course,
                work.stages,
                args.device,
                lambda engine: work.grade(engine, students, seed, lanes, tell),
            )
    console(args).print(summary(args.assignment, results, seed), end="")
    return 1 if any(result.points is None for result in results) else 0
