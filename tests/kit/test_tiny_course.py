"""The engine runs a course about something else: courses/tiny smooths a curve.

That none of it waits for torch is held in test_without_torch.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from grader.engine import Engine, Request, with_engine
from grader.read.stubs import StubState, stub_states
from grader.read.submission import read_submission
from grader.run.solutions import solution_files
from grader.types.report import CheckResult, Outcome, Report, Status
from grader.types.submission import Submission
from tests.kit.checkout import TINY

SEED = 11

ADDS_UP = b"""
import numpy as np

def moving_average(values, width):
    if not 1 <= width <= len(values):
        raise ValueError("does not fit")
    return np.array([sum(values[i:i + width]) for i in range(len(values) - width + 1)])
"""
OF_ITS_OWN = b"""
def moving_average(values, width):
    return 3.5
"""
# What each file of the submission is in place of the solution.
OVERLAYS: dict[str, dict[str, bytes]] = {
    "adds up": {"moving_average.py": ADDS_UP},
    "a number": {"moving_average.py": OF_ITS_OWN},
}


@pytest.fixture(scope="module")
def reports() -> Mapping[str, Report]:
    """The reports on the solutions, the stubs and every overlay."""
    solutions = solution_files(TINY)
    submissions = {
        "solutions": Submission("solutions", solutions),
        "stubs": read_submission(TINY.exercises),
        **{name: Submission(name, solutions | files) for name, files in OVERLAYS.items()},
    }

    def body(engine: Engine) -> dict[str, Report]:
        return {
            name: engine.grade(Request(submission, TINY.stages, SEED))
            for name, submission in submissions.items()
        }

    return with_engine(TINY, TINY.stages, "cpu", body)


def checks(report: Report, slug: str) -> dict[str, CheckResult]:
    stage = next(stage for stage in report.stages if stage.slug == slug)
    return {check.id.removeprefix(f"{slug}."): check for check in stage.checks}


def test_the_solutions_get_full_marks(reports: Mapping[str, Report]) -> None:
    report = reports["solutions"]
    assert (report.score, report.max_score, report.bonus) == (10, 10, 2)
    assert [stage.status for stage in report.stages] == [Status.PASSED] * 3


def test_the_stubs_are_not_started(reports: Mapping[str, Report]) -> None:
    report = reports["stubs"]
    assert (report.score, report.bonus) == (0, 0)
    assert [stage.status for stage in report.stages] == [Status.NOT_STARTED] * 3
    assert set(stub_states(TINY).values()) == {StubState.IN_STEP}


def test_a_mistake_is_named_and_costs_its_own_checks(reports: Mapping[str, Report]) -> None:
    own = checks(reports["adds up"], "moving_average")
    assert {name for name, check in own.items() if check.score == 0} == {"values"}
    assert own["values"].diagnosis is not None
    assert own["values"].diagnosis.id == "average_sum"
    call = own["values"].message.splitlines()[1]
    assert call.strip() == "call      moving_average([-0.9, -0.3, -0.9, -0.7, 0] float64, 2)"


def test_a_later_stage_says_which_earlier_one_is_the_cause(reports: Mapping[str, Report]) -> None:
    first, second, bonus = reports["adds up"].stages
    assert (first.status, second.status, bonus.status) == (
        Status.FAILED,
        Status.FAILED,
        Status.PASSED,
    )
    assert second.caused_by == "moving_average"


def test_a_value_of_another_type_is_told(reports: Mapping[str, Report]) -> None:
    check = checks(reports["a number"], "moving_average")["values"]
    assert check.outcome is Outcome.FAILED
    assert "moving_average(...) returned float 3.5" in check.message
    assert "a numpy array" in check.message
