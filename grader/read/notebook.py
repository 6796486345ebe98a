"""A course and its stubs -> a notebook to study by or to hand in, as an .ipynb's data. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from grader.types.course import Assignment, Course, Stage
from grader.types.predictions import Predictions

_INDENT = "    "
_START = "%load_ext grader"
TAG = re.compile(r"<(?=[a-zA-Z/!])")


def notebook(
    course: Course,
    stubs: Mapping[str, str],
    predictions: Mapping[str, Predictions],
    answers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The notebook, format 4.5.

    `stubs`, `predictions` and `answers` are by slug; an answer stands in the place of the stub's
    code. A stage's cells have ids that depend on its slug alone.
    """
    cells = [_markdown("title", _opening(course)), _code("start", _START)]
    for stage in course.stages:
        stub = stubs[stage.slug]
        cells += _introduction(stage, stub, predictions)
        code = cell_code((answers or {}).get(stage.slug, stub), course)
        cells.append(_code(f"{stage.slug}-code", f"%%grade {stage.slug}\n{code}", stage))
        cells.append(_code(f"{stage.slug}-try", "", stage))
    cells.append(_markdown("total-text", "## Where you stand\n\nAll stages that you have run:"))
    cells.append(_code("total", "grade_here()"))
    return notebook_file(cells)


def assignment_notebook(
    course: Course,
    assignment: Assignment,
    solutions: Mapping[str, str],
    predictions: Mapping[str, Predictions],
) -> dict[str, Any]:
    """The instructor's version of what students hand in, with nbgrader's markers and metadata.

    `solutions` are the sources of the stages by slug. Each stage has one cell to write in, whose
    grade_id is `solution_id`, and one that grades, whose grade_id is the slug: whatever becomes of
    the checks, the cells stay the same. All other cells are locked, the texts too, so that what is
    not locked is the student's own.
    """
    cells = [_markdown("title", _assignment_opening(course, assignment)), _code("start", _START)]
    cells = [_nbgrader(cell, f"course-{cell['id']}", locked=True) for cell in cells]
    for stage in assignment.stages:
        source = solutions[stage.slug]
        texts = _introduction(stage, source, predictions)
        cells += [_nbgrader(text, text["id"], locked=True) for text in texts]
        code = _code(f"{stage.slug}-code", cell_code(source, course), stage)
        cells.append(_nbgrader(code, solution_id(stage), solution=True))
        check = _code(f"{stage.slug}-check", _check(stage), stage)
        cells.append(_nbgrader(check, stage.slug, locked=True, points=stage.points))
    return notebook_file(cells)


def solution_id(stage: Stage) -> str:
    """The grade_id of the cell that holds the answer to a stage."""
    return f"{stage.slug}-code"


def _introduction(
    stage: Stage, stub: str, predictions: Mapping[str, Predictions]
) -> list[dict[str, Any]]:
    """A stage's text and its questions."""
    cells = [_markdown(f"{stage.slug}-text", _teaching(stage, stub), stage)]
    if stage.slug in predictions:
        questions = _questions(predictions[stage.slug])
        cells.append(_markdown(f"{stage.slug}-predict", questions, stage))
    return cells


def _check(stage: Stage) -> str:
    return (
        f"# {stage.points:g} points. Run the cell above and then this one.\n"
        f'grade_here("{stage.slug}")'
    )


def _nbgrader(
    cell: dict[str, Any],
    grade_id: str,
    *,
    locked: bool = False,
    solution: bool = False,
    points: float | None = None,
) -> dict[str, Any]:
    """The cell with the metadata by which nbgrader knows it."""
    known: dict[str, Any] = {
        "schema_version": 3,
        "grade_id": grade_id,
        "grade": points is not None,
        "locked": locked,
        "solution": solution,
        "task": False,
    }
    if points is not None:
        known["points"] = points
    return {**cell, "metadata": {**cell["metadata"], "nbgrader": known}}


def notebook_file(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A notebook of format 4.5 with these cells."""
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def cell_code(source: str, course: Course) -> str:
    """A stage's file as a cell: without its docstring and without imports from other stages.

    In a notebook the stages share their names. A source that is not Python stays as it is.
    """
    source = source.replace("\r\n", "\n")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return source.rstrip("\n")
    slugs = {stage.slug for stage in course.stages}
    lines: list[str | None] = list(source.split("\n"))
    for number, node in enumerate(tree.body):
        is_docstring = number == 0 and ast.get_docstring(tree) is not None
        is_from_stage = (
            isinstance(node, ast.ImportFrom) and node.level == 0 and node.module in slugs
        )
        if is_docstring or is_from_stage:
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            lines[first:last] = [None] * (last - first)
    code = "\n".join(line for line in lines if line is not None)
    return re.sub(r"\n{4,}", "\n\n\n", code).strip("\n")


def _opening(course: Course) -> str:
    return f"""# {_text(course.title)}

Work from top to bottom. Each stage says what it is about and leaves some code for you to write.

1. Run the next cell once. It starts the grader in the background. If it finds no module `grader`,
   choose the kernel of the environment that you have installed this course in.
2. In a stage's cell, put your code in place of `raise NotImplementedError` and run the cell
   (Shift+Enter). The verdict appears below it, with hints to open when you are stuck.
3. The empty cell after it is for trying things out. What you have written so far is all there.

`grade_here("{course.stages[0].slug}")` grades what you have defined in cells of your own,
`grade_here()` everything you have so far. Interrupt the kernel to stop a verdict."""


def _assignment_opening(course: Course, assignment: Assignment) -> str:
    points = sum(stage.points for stage in assignment.stages)
    return f"""# {_text(course.title)}

{len(assignment.stages)} stages, {points:g} points. Work from top to bottom.

1. Run the next cell once. It starts the grader in the background. If it finds no module `grader`,
   choose the kernel of the environment that you have installed this course in.
2. In each stage, put your code in place of `raise NotImplementedError()` and run the cell. Add
   cells of your own wherever you like.
3. Then run the cell below it: it shows how your code does, and hints to open when you are stuck.
   It runs the visible checks. More checks run on submission, and the points come from all of them.

Keep the name of this notebook and the cells that it came with. A stage may use what you have
written in the stages before it."""


def _teaching(stage: Stage, stub: str) -> str:
    """Heading, points and the docstring of the stub, whose first line is the heading if any."""
    doc = (ast.get_docstring(ast.parse(stub)) or "").strip()
    summary, _, rest = doc.partition("\n\n")
    facts = f"`{stage.slug}`, {stage.points:g} {'bonus ' if stage.bonus else ''}points"
    if not summary or "\n" in summary:
        return "\n\n".join(filter(None, [f"## {_text(stage.title)}", facts, _text(doc)]))
    heading = f"## {_text(summary.removesuffix('.'))}"
    parts = [heading, f"**{_text(stage.title)}**: {facts}", _text(rest)]
    return "\n\n".join(filter(None, parts))


def _questions(predictions: Predictions) -> str:
    parts = ["### Predict before you write\n\nNo points: answer in your head, then look."]
    for number, question in enumerate(predictions.questions, start=1):
        parts.append(f"#### {number}. {_text(question.heading)}")
        parts.append(_text(question.text))
        if question.choices:
            choices = question.choices.items()
            parts.append("\n".join(f"- {letter}) {_text(says)}" for letter, says in choices))
        parts.append("<details><summary>The answer</summary>")
        parts.append(f"**{_text(question.solution)}**")
        parts.append(_text(question.because))
        parts.append("</details>")
    return "\n\n".join(parts)


def _text(text: str) -> str:
    """An author's text, in which nothing is a tag; code by indentation is left as it is."""
    lines = text.split("\n")
    return "\n".join(s if s.startswith(_INDENT) else TAG.sub("&lt;", s) for s in lines)


def _markdown(name: str, source: str, stage: Stage | None = None) -> dict[str, Any]:
    return {
        "cell_type": "markdown",
        "id": _identifier(name),
        "metadata": _metadata(stage),
        "source": _lines(source),
    }


def _code(name: str, source: str, stage: Stage | None = None) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": _identifier(name),
        "metadata": _metadata(stage),
        "execution_count": None,
        "outputs": [],
        "source": _lines(source),
    }


def _identifier(name: str) -> str:
    """A cell's id has at most 64 letters; the end says which of the stage's cells it is."""
    slug, _, part = name.rpartition("-")
    return f"{slug[:50]}-{part}" if slug else part


def _metadata(stage: Stage | None) -> dict[str, Any]:
    return {} if stage is None else {"grader": {"stage": stage.slug}}


def _lines(source: str) -> Sequence[str]:
    return source.splitlines(keepends=True)
