"""Builds a notebook from a course and its stubs, and the cells of an assignment. Pure."""

from __future__ import annotations

import ast
import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.learning.predict.types import Predictions
from grader.show.html import SUMMARY
from grader.types.course import Course, Stage
from grader.types.resources import filled

_INDENT = "    "
START = "%load_ext grader"
_FIGURE = "figure.png"
_FINALE = """## The finale

When your code passes, train a small model with it, in about two minutes: remove the # below and
run the cell. To stop early, interrupt the kernel: you then see what was learnt so far."""
_TRAIN = "# %finale"
TAG = re.compile(r"<(?=[a-zA-Z/!])")


def notebook(
    course: Course,
    stubs: Mapping[str, str],
    predictions: Mapping[str, Predictions],
    figures: Mapping[str, bytes],
    answers: Mapping[str, str] | None = None,
    *,
    has_finale: bool = False,
) -> dict[str, Any]:
    """The notebook, in format 4.5; if the course `has_finale`, it ends with the finale.

    `stubs`, `predictions`, `figures` (PNG) and `answers` are keyed by slug; an answer replaces the
    stub's code. The ids of a stage's cells depend only on its first slug.
    """
    cells = [markdown_cell("title", _opening(course)), code_cell("start", START)]
    for stage in course.stages:
        stub = stubs[stage.slug]
        cells += introduction(stage, stub, predictions, figures)
        code = cell_code((answers or {}).get(stage.slug, stub), course, stub)
        cells.append(code_cell(f"{stage.cell_name}-code", f"%%grade {stage.slug}\n{code}", stage))
        cells.append(code_cell(f"{stage.cell_name}-try", "", stage))
    cells.append(markdown_cell("total-text", "## Your scoreboard\n\nAll stages that you have run:"))
    cells.append(code_cell("total", "grade_here()"))
    if has_finale:
        cells.append(markdown_cell("finale-text", _FINALE))
        cells.append(code_cell("finale", _TRAIN))
    return notebook_file(cells)


def introduction(
    stage: Stage,
    stub: str,
    predictions: Mapping[str, Predictions],
    figures: Mapping[str, bytes] | None,
) -> list[dict[str, Any]]:
    """A stage's text and its questions; with `figures`, its formula, docstrings and figure too."""
    details = figures is not None
    text = markdown_cell(f"{stage.cell_name}-text", _teaching(stage, stub, details=details), stage)
    if figures is not None and stage.slug in figures:
        alt = f"A small example of {stage.slug}: the first and the last step as tables of numbers"
        text["source"] += ["\n", "\n", f"![{alt}](attachment:{_FIGURE})"]
        picture = base64.b64encode(figures[stage.slug]).decode("ascii")
        text["attachments"] = {_FIGURE: {"image/png": picture}}
    cells = [text]
    if stage.slug in predictions:
        questions = _questions(predictions[stage.slug])
        cells.append(markdown_cell(f"{stage.cell_name}-predict", questions, stage))
    return cells


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


def cell_code(source: str, course: Course, stub: str = "") -> str:
    """A stage's file as a cell, without its docstring and without imports from other stages.

    In a notebook the stages share one namespace. A docstring that is also in `stub`, and so in the
    text above the cell, is cut to its first line. Source that is not valid Python is unchanged.
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
    told = {each.text for each in _described(stub)}
    for each in _described(source):
        summary, _, rest = each.text.partition("\n\n")
        is_plain = not re.search(r'[\n"\\]', summary)
        if each.text not in told or not rest or not is_plain:
            continue
        docstring = each.node.body[0]
        first, last = docstring.lineno - 1, docstring.end_lineno or docstring.lineno
        indent = " " * docstring.col_offset
        lines[first:last] = [f'{indent}"""{summary}"""', *[None] * (last - first - 1)]
    code = "\n".join(line for line in lines if line is not None)
    return re.sub(r"\n{4,}", "\n\n\n", code).strip("\n")


_Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class _Described:
    """A function, class or method with a docstring; a method's name has its class before it."""

    name: str
    node: _Definition
    text: str


def _described(source: str) -> list[_Described]:
    """Every function, class and method with a docstring, in order; none if it is not Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    found = []
    for outer in tree.body:
        for node in (outer, *(outer.body if isinstance(outer, ast.ClassDef) else ())):
            if isinstance(node, _Definition) and (text := ast.get_docstring(node)):
                of = f"{outer.name}." if isinstance(outer, ast.ClassDef) and node != outer else ""
                found.append(_Described(of + node.name, node, text))
    return found


def _documented(stub: str) -> list[str]:
    """The docstrings of a stub as markdown, each under its function's name."""
    parts = []
    for each in _described(stub):
        parts.append(f"### `{each.name}`")
        parts.append(harmless("\n".join(_as_markdown(each.text.split("\n")))))
    return parts


def _as_markdown(lines: Sequence[str]) -> Iterator[str]:
    """A docstring's lines: examples become code, what it raises becomes a list."""
    is_example = is_raising = False
    for line in lines:
        is_example = bool(line.strip()) and (is_example or line.startswith(">>>"))
        is_raising = bool(line.strip()) and (is_raising or line == "Raises:")
        if is_example:
            yield f"{_INDENT}{line}"
        elif is_raising and line.startswith(_INDENT):
            name, colon, why = line.strip().partition(":")
            yield f"- `{name}`{colon}{why}" if name.isidentifier() else f"  {line.strip()}"
        else:
            yield line


def _opening(course: Course) -> str:
    first = course.stages[0].slug
    exam = ", unless this is an exam" if any(stage.is_exam for stage in course.stages) else ""
    values = {"title": harmless(course.title), "first": first, "exam": exam}
    return filled(__package__, "templates/course.md", **values).rstrip()


def _teaching(stage: Stage, stub: str, *, details: bool) -> str:
    """Heading, points, the stub's docstring, the formula, and each function's docstring.

    The first line of the stub's docstring is the heading if there is one.
    """
    doc = (ast.get_docstring(ast.parse(stub)) or "").strip()
    summary, _, rest = doc.partition("\n\n")
    formula = f"$$\n{stage.formula}\n$$" if stage.formula else ""
    more = [formula, *_documented(stub)] if details else []
    facts = f"`{stage.slug}`, {stage.points:g} {'bonus ' if stage.bonus else ''}points"
    if not summary or "\n" in summary:
        parts = [f"## {harmless(stage.title)}", facts, harmless(doc), *more]
        return "\n\n".join(filter(None, parts))
    heading = f"## {harmless(summary.removesuffix('.'))}"
    parts = [heading, f"**{harmless(stage.title)}**: {facts}", harmless(rest), *more]
    return "\n\n".join(filter(None, parts))


def _questions(predictions: Predictions) -> str:
    parts = ["### Predict before you write\n\nNo points: answer in your head, then look."]
    for number, question in enumerate(predictions.questions, start=1):
        parts.append(f"#### {number}. {harmless(question.heading)}")
        parts.append(harmless(question.text))
        if question.choices:
            choices = question.choices.items()
            parts.append("\n".join(f"- {letter}) {harmless(says)}" for letter, says in choices))
        parts.append(f"<details>{SUMMARY}The answer</summary>")
        parts.append(f"**{harmless(question.solution)}**")
        parts.append(harmless(question.because))
        parts.append("</details>")
    return "\n\n".join(parts)


def harmless(text: str) -> str:
    """An author's text with every tag made harmless; indented code is unchanged."""
    lines = text.split("\n")
    return "\n".join(s if s.startswith(_INDENT) else TAG.sub("&lt;", s) for s in lines)


def markdown_cell(name: str, source: str, stage: Stage | None = None) -> dict[str, Any]:
    """A cell of text; one that belongs to a stage says so in its metadata."""
    return {
        "cell_type": "markdown",
        "id": _identifier(name),
        "metadata": {} if stage is None else {"grader": {"stage": stage.slug}},
        "source": source.splitlines(keepends=True),
    }


def code_cell(name: str, source: str, stage: Stage | None = None) -> dict[str, Any]:
    """A cell of code that has not run; one that belongs to a stage says so in its metadata."""
    text = markdown_cell(name, source, stage)
    return {**text, "cell_type": "code", "execution_count": None, "outputs": []}


def _identifier(name: str) -> str:
    """A cell's id, at most 64 characters; its end says which of the stage's cells it is."""
    slug, _, part = name.rpartition("-")
    return f"{slug[:50]}-{part}" if slug else part
