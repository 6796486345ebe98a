"""The engine runs a course about something else, without torch: courses/tiny smooths a curve."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from grader.engine import Engine, Request, with_engine
from grader.read.course_file import read_course
from grader.read.stubs import StubState, stub_states
from grader.read.submission import read_submission
from grader.run.solutions import solution_files
from grader.types.report import CheckResult, Outcome, Report, Status
from grader.types.submission import Submission

TINY = Path(__file__).parent / "courses" / "tiny"
COURSE = read_course(TINY / "course.toml")
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
LOOKS_AROUND = b"""
import sys

LOADED = [name for name in ("torch", "numpy") if name in sys.modules]

def moving_average(values, width):
    raise RuntimeError(f"this process has loaded {LOADED}")
"""
# What each file of the submission is in place of the solution.
OVERLAYS: dict[str, dict[str, bytes]] = {
    "adds up": {"moving_average.py": ADDS_UP},
    "a number": {"moving_average.py": OF_ITS_OWN},
    "looks around": {"moving_average.py": LOOKS_AROUND},
}


@pytest.fixture(scope="module")
def reports() -> Mapping[str, Report]:
    """The reports on the solutions, the stubs and every overlay."""
    solutions = solution_files(COURSE)
    submissions = {
        "solutions": Submission("solutions", solutions),
        "stubs": read_submission(COURSE.exercises),
        **{name: Submission(name, solutions | files) for name, files in OVERLAYS.items()},
    }

    def body(engine: Engine) -> dict[str, Report]:
        return {
            name: engine.grade(Request(submission, COURSE.stages, SEED))
            for name, submission in submissions.items()
        }

    return with_engine(COURSE, COURSE.stages, "cpu", body)


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
    assert set(stub_states(COURSE).values()) == {StubState.IN_STEP}


def test_a_mistake_is_named_and_costs_its_own_checks(reports: Mapping[str, Report]) -> None:
    own = checks(reports["adds up"], "moving_average")
    assert {name for name, check in own.items() if check.score == 0} == {"values"}
    assert own["values"].diagnosis is not None
    assert own["values"].diagnosis.id == "average_sum"
    call = own["values"].message.splitlines()[1]
    assert call.strip() == "call      moving_average([n=5] float64, 2)"


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


def test_the_worker_loads_what_the_course_asks_for_and_no_torch(
    reports: Mapping[str, Report],
) -> None:
    check = checks(reports["looks around"], "moving_average")["values"]
    assert "this process has loaded ['numpy']" in check.message


WITHOUT_TORCH = """
import sys
from grader.command.main import main
code = main(sys.argv[1:])
print(sorted(name for name in sys.modules if name.split(".")[0] == "torch"), file=sys.stderr)
raise SystemExit(code)
"""


@pytest.mark.parametrize(
    "words",
    [["verify"], ["--submission", "adds up"]],
    ids=["verify", "a mistake, diagnosed"],
)
def test_the_command_never_loads_torch(words: list[str], tmp_path: Path) -> None:
    if words[-1] == "adds up":
        (tmp_path / "moving_average.py").write_bytes(ADDS_UP)
        words = ["--submission", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *words, "--course", str(TINY), "--json"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.stderr.splitlines()[-1] == "[]", done.stderr
    answer: Any = json.loads(done.stdout)
    if words[0] == "verify":
        assert done.returncode == 0, answer
        for proof in answer:
            assert proof["misconceptions"]
            assert {m["named"] for m in proof["misconceptions"]} == {
                *(m["id"] for m in proof["misconceptions"])
            }
    else:
        assert answer["course"] == "smoothing"
        assert done.returncode == 1
