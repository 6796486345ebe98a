"""The files that a GitHub repository needs beside the student's copy, first its workflow. Pure.

The steps use GitHub Classroom's own actions from https://github.com/classroom-resources; each
action's inputs are in its action.yml.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence

from grader.types.course import Course, Stage
from grader.types.resources import filled, resource

IGNORED = resource(__package__, "templates/github_gitignore")
WORKFLOW = ".github/workflows/classroom.yml"
_COMMAND_GRADER = "classroom-resources/autograding-command-grader@v1"
_REPORTER = "classroom-resources/autograding-grading-reporter@v1"
_MINUTES = 5  # for one stage


def workflow(course: Course, points: Sequence[tuple[Stage, float]], torch: str) -> str:
    """The workflow: a step for each stage, with the points of its visible checks, then a report.

    `torch` is the command that installs torch, "" for a course without it. The points are
    rounded, because the action takes only whole points; it gives all of a stage's points or none.
    """
    results = [
        f'          {stage.slug.upper()}_RESULTS: "${{{{steps.{stage.slug}.outputs.result}}}}"'
        for stage, _ in points
    ]
    return filled(
        __package__,
        "templates/github_workflow.yml",
        title=course.title.replace("\n", " "),
        torch=f"          {torch}\n" if torch else "",
        steps="".join(_step(stage, worth) for stage, worth in points).rstrip(),
        reporter=_REPORTER,
        results="\n".join(results),
        runners=",".join(stage.slug for stage, _ in points),
    )


def _step(stage: Stage, points: float) -> str:
    return filled(
        __package__,
        "templates/github_step.yml",
        name=json.dumps(stage.title, ensure_ascii=False),  # a JSON string is a YAML string too
        slug=stage.slug,
        grader=_COMMAND_GRADER,
        minutes=str(_MINUTES),
        points=str(max(1, round(points))),
    )


def visible_points(source: str) -> float:
    """The total points of the checks in a check file's source."""
    points = 0.0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for decorator in node.decorator_list:
                if (
                    isinstance(decorator, ast.Call)
                    and ast.unparse(decorator.func) == "pytest.mark.points"
                ):
                    points += float(ast.literal_eval(decorator.args[0]))
    return points
