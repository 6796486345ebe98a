"""`grade repro CHECK`: a failing check as a few lines of plain torch."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from grader.learning.pictures.trace_command import add_submission, chosen_submission
from grader.read.course_file import find_stage
from grader.read.stubs import read_stub
from grader.run.facts import CaseFact, Ending, StageFacts
from grader.types.course import Course, Stage
from grader.types.errors import KitError, close_to
from grader.types.report import CheckResult
from grader.types.submission import Submission


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of `grade repro`."""
    parser.description = (
        "Print a few lines of plain torch that show how a check fails. Run them in the folder of "
        "your files, without the grader."
    )
    parser.add_argument(
        "check", metavar="CHECK", help="such as softmax.values; a stage means its first failure"
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed of the run that failed")
    add_submission(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the lines. Raises KitError if the check passes or has no such lines."""
    from grader.learning.repro.script import script

    course, submission = chosen_submission(args)
    slug, _, name = args.check.partition(".")
    stage = find_stage(course, slug)
    facts = _facts(course, stage, submission, args.seed)
    check, fact = _failure(stage, facts, name, args.seed)
    file = "" if submission.cells is not None else submission.script or stage.file_name
    stub = read_stub(stage)
    print(script(stage, check, fact, module=Path(file).stem, stub=stub, seed=args.seed), end="")
    return 0


def _facts(course: Course, stage: Stage, submission: Submission, seed: int) -> StageFacts:
    """How the stage's checks end, on the CPU."""
    from grader.run.workers import Interpreter

    with Interpreter(course.preload, course.limits, gpu=False) as interpreter:
        from grader.run.answers import WorkerAnswers
        from grader.run.session import Checks, with_checks
        from grader.run.under_check import StageUnderCheck

        def body(checks: Checks) -> StageFacts:
            answers = WorkerAnswers(interpreter, course, stage, submission)
            return checks.run(stage, StageUnderCheck(stage, answers), seed, "cpu")

        return with_checks(course, [stage], body)


def _failure(stage: Stage, facts: StageFacts, name: str, seed: int) -> tuple[CheckResult, CaseFact]:
    """The failing check that was asked for, or the first to fix, and its case. Raises KitError."""
    from grader.judge.verdict import judge_stage

    result = judge_stage(stage, facts)
    failing = {check.id: check for cause in result.causes for check in cause.checks}
    if name:
        known = {check.id.partition(".")[2] for check in result.checks}
        if name not in known:
            raise KitError(f"{stage.slug} has no check '{name}'{close_to(name, known)}")
        check = failing.get(f"{stage.slug}.{name}")
    else:
        check = result.causes[0].show if result.causes else None
    if check is None:
        what = f"{stage.slug}.{name}" if name else stage.slug
        raise KitError(f"{what} passes with seed {seed}: there is nothing to show")
    passed = (Ending.PASSED, Ending.SKIPPED, Ending.NOT_WRITTEN)
    for fact in facts.cases:
        if fact.case.check == check.id and fact.ending not in passed:
            return replace(check, message=fact.message), fact
    raise KitError(f"{check.id}: nothing is written yet, so there is nothing to show")
