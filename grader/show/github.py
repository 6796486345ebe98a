"""What a repository on GitHub is given beside the student's bundle: its workflow. Pure.

Its steps are those that GitHub Classroom wrote: https://github.com/classroom-resources has the
actions, whose inputs are in each one's action.yml.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from grader.types.course import Course, Stage

WORKFLOW = ".github/workflows/classroom.yml"
_COMMAND_GRADER = "classroom-resources/autograding-command-grader@v1"
_REPORTER = "classroom-resources/autograding-grading-reporter@v1"
_MINUTES = 5  # for one stage

IGNORED = """\
__pycache__/
.ipynb_checkpoints/
.venv/
*.egg-info/
build/
# What `grade` remembers is your own; only the stubs as they were belong here.
.grade/*
!.grade/stubs/
"""


def workflow(course: Course, points: Sequence[tuple[Stage, float]], torch: str) -> str:
    """The workflow: a step for each stage and the points of its visible checks, then the report.

    `torch` is what pip is to install, with its version. Points are whole ones: the action takes no
    others, and gives all of a stage's or none.
    """
    steps = "".join(_step(stage, worth) for stage, worth in points)
    results = "".join(
        f'          {stage.slug.upper()}_RESULTS: "${{{{steps.{stage.slug}.outputs.result}}}}"\n'
        for stage, _ in points
    )
    runners = ",".join(stage.slug for stage, _ in points)
    return _WORKFLOW.format(
        title=course.title.replace("\n", " "),
        torch=torch,
        steps=steps,
        reporter=_REPORTER,
        results=results,
        runners=runners,
    )


def readme(course: Course, text: str) -> str:
    """The bundle's README.md with what is different in a repository on GitHub."""
    return f"{text.rstrip()}\n{_README.format(first=course.stages[0].file_name)}"


def _step(stage: Stage, points: float) -> str:
    name = json.dumps(stage.title, ensure_ascii=False)  # which is a string of YAML too
    return f"""\
      - name: {name}
        id: {stage.slug}
        uses: {_COMMAND_GRADER}
        with:
          test-name: {name}
          command: grade {stage.slug} --submission exercises --course . --device cpu
          timeout: {_MINUTES}
          max-score: {max(1, round(points))}
"""


_WORKFLOW = """\
# {title}: runs your visible checks at every push; see the Actions tab.
# The points are for your information: what counts is graded by your instructors.
name: Autograding Tests
on:
  - push
  - workflow_dispatch
permissions:
  checks: write
  actions: read
  contents: read
jobs:
  run-autograding-tests:
    runs-on: ubuntu-latest
    if: github.actor != 'github-classroom[bot]'
    timeout-minutes: 30
    steps:
      - name: Checkout code
        uses: actions/checkout@v4
      - name: Set up Python
        uses: actions/setup-python@v5
        with:
          python-version: "3.12"
          cache: pip
          cache-dependency-path: constraints.txt
      - name: Install the grader
        run: |
          pip install "{torch}" --index-url https://download.pytorch.org/whl/cpu
          pip install -c constraints.txt .
{steps}\
      - name: Autograding Reporter
        uses: {reporter}
        env:
{results}\
        with:
          runners: {runners}
"""

_README = """
## In this repository

Work in `exercises/`, beginning with `{first}`; `grade` and `grade watch` look
there. Commit and push: the tab *Actions* shows which of your visible checks
pass, a few minutes later. More checks run when your instructors grade.

`.github/`, `grader/` and `tests/` are not yours to change: changing them changes
what you see, not what you get.
"""
