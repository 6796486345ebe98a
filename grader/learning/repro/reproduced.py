"""Runs a stage's checks on a submission, and shows a failing one as a few lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from grader.judge.verdict import judge_stage
from grader.learning.repro.script import script
from grader.read.course_file import find_stage
from grader.read.stubs import read_stub
from grader.run.answers import WorkerAnswers
from grader.run.facts import CaseFact, Ending, StageFacts
from grader.run.importing import Import
from grader.run.session import Checks
from grader.run.under_check import StageUnderCheck
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.errors import KitError, close_to
from grader.types.report import CheckResult
from grader.types.submission import Submission


def reproduced(
    course: Course,
    check: str,
    submission: Submission,
    seed: int,
    interpreter: Interpreter,
    checks: Checks,
) -> str:
    """The lines that show how `check` fails, on the CPU; a stage means its first failure.

    Raises KitError if the check passes, or has no such lines.
    """
    slug, _, name = check.partition(".")
    stage = find_stage(course, slug)
    answers = WorkerAnswers(interpreter, Import(course, stage, submission))
    facts = checks.run(stage, StageUnderCheck(stage, answers), seed, "cpu")
    failing, fact = find_failure(stage, facts, name, seed)
    return written(stage, submission, failing, fact, seed)


def written(
    stage: Stage, submission: Submission, failing: CheckResult, fact: CaseFact, seed: int
) -> str:
    """The lines that show how a case of a check fails. Raises KitError if there are none."""
    file = "" if submission.cells is not None else submission.script or stage.file_name
    return script(failing, fact, module=Path(file).stem, stub=read_stub(stage), seed=seed)


def find_failure(
    stage: Stage, facts: StageFacts, name: str, seed: int
) -> tuple[CheckResult, CaseFact]:
    """The failing check `name`, or with "" the first to fix, and its case. Raises KitError."""
    result = judge_stage(stage, facts)
    failing = {check.id: check for cause in result.causes for check in cause.checks}
    if name:
        known = {check.id.partition(".")[2] for check in result.checks}
        if name not in known:
            advice = f"; `grade repro {stage.slug}` takes the first that fails"
            raise KitError(f"{stage.slug} has no check '{name}'{close_to(name, known) or advice}")
        check = failing.get(f"{stage.slug}.{name}")
    else:
        check = result.causes[0].show if result.causes else None
    if check is None:
        what = f"{stage.slug}.{name}" if name else stage.slug
        raise KitError(f"{what} passes with seed {seed}: there is nothing to show")
    passed = (Ending.PASSED, Ending.SKIPPED, Ending.NOT_WRITTEN)
    cases = [fact for fact in facts.cases if fact.case.check == check.id]
    for fact in cases:
        if fact.ending not in passed:
            return replace(check, message=fact.message), fact
    if not cases:
        raise KitError(f"{check.id} is about what the code calls: its message names the line")
    raise KitError(f"{check.id}: nothing is written yet, so there is nothing to show")
