"""The workflow of a repository, held against what its actions publish."""

from pathlib import Path
from typing import Any

import pytest

from grader.channels.github import IGNORED, visible_points, workflow
from grader.types.course import Course, Limits, Stage

yaml = pytest.importorskip("yaml")

# The inputs in each action's action.yml and whether it needs them: of classroom-resources/
# autograding-command-grader (May 2024) and autograding-grading-reporter (September 2025) all, of
# actions/checkout@v4 and actions/setup-python@v5 those that are used here.
ACTIONS: dict[str, dict[str, bool]] = {
    "classroom-resources/autograding-command-grader@v1": {
        "test-name": True,
        "setup-command": False,
        "command": True,
        "timeout": False,
        "max-score": False,
    },
    "classroom-resources/autograding-grading-reporter@v1": {"token": False, "runners": True},
    "actions/checkout@v4": {},
    "actions/setup-python@v5": {
        "python-version": False,
        "cache": False,
        "cache-dependency-path": False,
    },
}
FOLD = Stage("fold", 'Fold: a "sheet" # 1', 40, False, (), (), Path())
WINGS = Stage("left_wing", "Zwei Flügel", 60, False, (), (), Path())
COURSE = Course("paper-birds", "Paper birds", Path(), (), Limits(), (FOLD, WINGS))
TEXT = workflow(COURSE, [(FOLD, 3), (WINGS, 2.5)], "pip install torch==2.13.0")


def job() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(TEXT)["jobs"]["run-autograding-tests"]
    return found


def test_every_action_gets_the_inputs_that_it_publishes() -> None:
    used = [step for step in job()["steps"] if "uses" in step]
    assert {step["uses"] for step in used} == set(ACTIONS)
    for step in used:
        inputs = ACTIONS[step["uses"]]
        given = step.get("with", {})
        assert given.keys() <= inputs.keys(), step["name"]
        assert {name for name, needed in inputs.items() if needed} <= given.keys()
        assert all(isinstance(value, (str, int)) for value in given.values())


def test_the_reporter_is_given_the_result_of_each_step() -> None:
    """It reads the variable RUNNER-ID_RESULTS, all in capitals, for each of its runners."""
    *_, reporter = job()["steps"]
    runners = reporter["with"]["runners"].split(",")
    graders = [s for s in job()["steps"] if "command-grader" in s.get("uses", "")]
    assert runners == [step["id"] for step in graders] == ["fold", "left_wing"]
    assert reporter["env"] == {
        f"{runner.upper()}_RESULTS": f"${{{{steps.{runner}.outputs.result}}}}" for runner in runners
    }


def test_a_stage_has_its_title_its_command_and_whole_points() -> None:
    fold, wings = (s for s in job()["steps"] if "command-grader" in s.get("uses", ""))
    assert fold["name"] == fold["with"]["test-name"] == 'Fold: a "sheet" # 1'
    assert fold["with"]["command"].startswith("grade fold --submission exercises ")
    assert wings["name"] == "Zwei Flügel"
    assert [step["with"]["max-score"] for step in (fold, wings)] == [3, 2]


def test_the_workflow_is_the_one_that_github_classroom_wrote() -> None:
    data = yaml.safe_load(TEXT)
    assert data["name"] == "Autograding Tests"
    assert data[True] == ["push", "workflow_dispatch"]  # `on` is a truth value in YAML 1.1
    assert data["permissions"] == {"checks": "write", "actions": "read", "contents": "read"}
    assert job()["if"] == "github.actor != 'github-classroom[bot]'"


def test_the_stubs_as_they_were_are_not_ignored() -> None:
    assert ".grade/*\n!.grade/stubs/\n" in IGNORED


def test_the_points_of_checks_are_read_from_their_marks() -> None:
    source = """
import pytest
@pytest.mark.points(2)
@pytest.mark.parametrize("n", [1, 2])
def test_one(n): ...
@pytest.mark.points(0.5, stand_in="one")
def test_two(): ...
def helper(): ...
"""
    assert visible_points(source) == 2.5
