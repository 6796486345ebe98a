"""The instructor's version of an assignment's notebook, for nbgrader to release. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grader.classes.nbgrader.restore import cell_metadata
from grader.learning.notebook.builder import (
    START,
    cell_code,
    code_cell,
    harmless,
    introduction,
    markdown_cell,
    notebook_file,
)
from grader.learning.predict.types import Predictions
from grader.types.course import Assignment, Course, Stage
from grader.types.resources import filled


def assignment_notebook(
    course: Course,
    assignment: Assignment,
    solutions: Mapping[str, str],
    predictions: Mapping[str, Predictions],
) -> dict[str, Any]:
    """The instructor's version of an assignment, with nbgrader's markers and metadata.

    The functions' docstrings stay in their cells, and there is no figure: nbgrader drops
    attachments, and on its feedback page the headings take the places of the stages' anchors.

    `solutions` are the stages' sources by slug. Each stage has a cell to write in, with the
    grade_id `solution_id`, and a graded cell, with the stage's `cell_name` as grade_id; the cells
    stay the same even if the checks change, or the stage is renamed. All other cells are locked,
    texts too, so every unlocked cell is the student's own.
    """
    cells = [markdown_cell("title", _opening(course, assignment)), code_cell("start", START)]
    cells = [_nbgrader(cell, f"course-{cell['id']}", locked=True) for cell in cells]
    for stage in assignment.stages:
        source = solutions[stage.slug]
        texts = introduction(stage, source, predictions, None)
        cells += [_nbgrader(text, text["id"], locked=True) for text in texts]
        code = code_cell(solution_id(stage), cell_code(source, course), stage)
        cells.append(_nbgrader(code, solution_id(stage), solution=True))
        call = (
            f"# {stage.points:g} points. Run the cell above and then this one.\n"
            f'grade_here("{stage.slug}")'
        )
        check = code_cell(f"{stage.cell_name}-check", call, stage)
        cells.append(_nbgrader(check, stage.cell_name, locked=True, points=stage.points))
    return notebook_file(cells)


def solution_id(stage: Stage) -> str:
    """The grade_id of the cell with a stage's answer."""
    return f"{stage.cell_name}-code"


def _opening(course: Course, assignment: Assignment) -> str:
    text = filled(
        __package__,
        "assignment.md",
        title=harmless(course.title),
        stages=str(len(assignment.stages)),
        points=f"{sum(stage.points for stage in assignment.stages):g}",
    )
    return text.rstrip()


def _nbgrader(
    cell: dict[str, Any],
    grade_id: str,
    *,
    locked: bool = False,
    solution: bool = False,
    points: float | None = None,
) -> dict[str, Any]:
    """The cell with the metadata that nbgrader needs."""
    known = cell_metadata(grade_id, locked=locked, solution=solution, points=points)
    return {**cell, "metadata": {**cell["metadata"], "nbgrader": known}}
