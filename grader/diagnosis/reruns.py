"""Runs one stage of a submission again, to explain why it fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.run.answers import WorkerAnswers
from grader.run.facts import Case, CaseFact
from grader.run.session import Checks
from grader.run.under_check import StageUnderCheck
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.submission import Submission


@dataclass(frozen=True)
class Reruns:
    """A stage of a submission, and all that is needed to run its checks as for the verdict."""

    interpreter: Interpreter
    course: Course
    stage: Stage
    submission: Submission
    checks: Checks
    seed: int
    device: str

    def facts(self, answers: WorkerAnswers, cases: Sequence[Case]) -> Iterator[CaseFact]:
        """The facts on these cases, each run when its fact is requested."""
        under_check = StageUnderCheck(self.stage, answers)
        return self.checks.facts(self.stage, under_check, self.seed, self.device, cases)
