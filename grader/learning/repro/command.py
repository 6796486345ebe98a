"""`grade repro CHECK`: a failing check as a few plain lines."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from grader.command.grade import add_submission
from grader.learning.pictures.trace_command import chosen_submission
from grader.read.course_file import find_stage

if TYPE_CHECKING:
    from grader.run.session import Checks


def add_options(parser: argparse.ArgumentParser) -> None:
    """Print a few plain lines that show how a check fails. Save them in a new file beside yours
    and run it, without the grader.
    """
    parser.add_argument(
        "check", metavar="CHECK", help="such as softmax.values; a stage means its first failure"
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed of the run that failed")
    add_submission(parser)


def run(args: argparse.Namespace) -> int:
    """Print the lines. Raises KitError if the check passes or has no such lines."""
    course, submission = chosen_submission(args)
    stage = find_stage(course, args.check.partition(".")[0])
    from grader.run.device import cpu_interpreter

    with cpu_interpreter(course) as interpreter:
        from grader.learning.repro.reproduced import reproduced
        from grader.run.collecting import with_checks

        def body(checks: Checks) -> str:
            return reproduced(course, args.check, submission, args.seed, interpreter, checks)

        print(with_checks(course, [stage], body), end="")
    return 0
