"""Runs one stage of a submission again, to explain why it fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from grader.run.answers import WorkerAnswers
from grader.run.facts import Case, CaseFact
from grader.run.failures import Cancelled
from grader.run.session import Checks
from grader.run.under_check import StageUnderCheck
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.submission import Submission

AnswersOfWorker = TypeVar("AnswersOfWorker", bound=WorkerAnswers)


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


class Cancellable:
    """Runs of a worker, one after the other, that another thread may cancel."""

    _running: WorkerAnswers | None = None
    _is_cancelled = False

    def cancel(self) -> None:
        """From another thread: end what is under way; it raises Cancelled soon."""
        self._is_cancelled = True
        if (running := self._running) is not None:
            running.abort()

    def go_on(self) -> None:
        """Raises Cancelled after `cancel`."""
        if self._is_cancelled:
            raise Cancelled

    def begun(self, answers: AnswersOfWorker) -> AnswersOfWorker:
        """The same answers, which `cancel` ends from now on. Raises Cancelled after it."""
        self._running = answers
        self.go_on()
        return answers
