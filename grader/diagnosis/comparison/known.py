"""What is known of a course's answers while an engine runs: its solutions and misconceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.diagnosis.comparison.replay import Replays
from grader.misconceptions import Known
from grader.read.misconceptions import read_known
from grader.run.budget import Spent
from grader.run.facts import StageFacts
from grader.run.failures import Cancelled
from grader.run.solutions import local_solutions
from grader.types.course import Course, Stage
from grader.types.report import Diagnosis

_DIAGNOSES = 10_000  # that are remembered


class KnownAnswers:
    """The solutions and misconceptions of each stage, and what they say of submissions' answers."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._replays = Replays()
        self._stages: dict[str, tuple[Known, Callable[[str], Any]]] = {}
        self._diagnoses: dict[tuple[object, ...], dict[str, Diagnosis]] = {}

    def of(self, stage: Stage) -> tuple[Known, Callable[[str], Any]]:
        """A stage's misconceptions, and what returns the solution of an entry point's name."""
        if stage.slug not in self._stages:
            solution = local_solutions(self._course, stage)
            self._stages[stage.slug] = read_known(stage), solution
        return self._stages[stage.slug]

    def diagnoses(
        self, stage: Stage, facts: StageFacts, go_on: Callable[[], None]
    ) -> dict[str, Diagnosis]:
        """The diagnoses of a stage's failing checks, computed once for the same facts.

        `go_on` is called before each step. Raises what it does.
        """
        from grader.diagnosis.comparison.diagnose import diagnose  # only what fails needs it

        numbers = tuple((fact.number, fact.ending) for fact in facts.cases if fact.exchanges)
        if numbers in self._diagnoses:
            return self._diagnoses[numbers]
        known, solution = self.of(stage)
        self._replays.go_on = go_on
        try:
            found = diagnose(facts, known, solution, self._replays)
        except (Spent, Cancelled):
            raise
        except Exception:  # noqa: BLE001 - whatever a submission answers, its verdict stands
            return {}
        is_known = all(number is not None for number, _ in numbers)
        if numbers and is_known and len(self._diagnoses) < _DIAGNOSES:
            self._diagnoses[numbers] = found
        return found
