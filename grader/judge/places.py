"""Where in a submission the answers of an entry point are made: the lines to look at. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from grader.types.course import Stage
from grader.types.submission import Submission
from grader.types.text import safe

_UNWRITTEN = re.compile(r"^\s*raise NotImplementedError\b", re.MULTILINE)
_LINES_SHOWN = 8
_LONGEST_LINE = 200

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class _Source:
    name: str
    text: str


def place_of(submission: Submission, stage: Stage, target: str) -> str:
    """The lines of the body of `target`, a function or "Class.method", in words; "" if unknown.

    A body of a few lines is quoted, of a longer one the lines that return.
    """
    for source in _sources(submission, stage):
        try:
            tree = ast.parse(source.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        found = _definition(tree, target.split("."))
        if found is not None:
            return _words(source, found)
    return ""


def is_written(submission: Submission, stage: Stage) -> bool:
    """Whether every entry point is there, and none where something is left to write."""
    for entry in stage.entry_points:
        definition = re.compile(rf"^(async +def|def|class) +{entry.name}\b", re.MULTILINE)
        texts = [source.text for source in _sources(submission, stage)]
        found = next((text for text in texts if definition.search(text)), None)
        if found is None or _UNWRITTEN.search(found):
            return False
    return True


def _sources(submission: Submission, stage: Stage) -> Iterator[_Source]:
    """Where the definition may be; of a notebook's cells the last one wins."""
    if submission.cells is not None:
        numbered = list(enumerate(submission.cells, start=1))
        for number, cell in reversed(numbered):
            lines = cell.split("\n")
            if lines[0].lstrip().startswith("%%"):
                lines[0] = ""
            yield _Source(f"code cell {number}", "\n".join(lines))
        return
    name = submission.script or stage.file_name
    text = submission.files.get(name, b"").decode("utf-8-sig", "replace")
    yield _Source(name, text.replace("\r\n", "\n"))


def _definition(tree: ast.Module | ast.ClassDef, names: list[str]) -> _Definition | None:
    """The innermost of the definitions `names` that is there: a class without the method, say."""
    for node in reversed(tree.body):
        if isinstance(node, _Definition) and node.name == names[0]:
            if isinstance(node, ast.ClassDef) and names[1:]:
                return _definition(node, names[1:]) or node
            return node
    return None


def _words(source: _Source, definition: _Definition) -> str:
    body = definition.body
    if len(body) > 1 and ast.get_docstring(definition, clean=False) is not None:
        body = body[1:]
    first, last = body[0].lineno, body[-1].end_lineno or body[-1].lineno
    if isinstance(definition, ast.ClassDef):
        first = last = definition.lineno
    which = f"line {first}" if first == last else f"lines {first} to {last}"
    words = f"\n  look at   {safe(source.name)}, {which}, in {definition.name}"
    lines = source.text.split("\n")
    code = [
        number
        for number in range(first, last + 1)
        if lines[number - 1].strip() and not lines[number - 1].lstrip().startswith("#")
    ]
    if len(code) > _LINES_SHOWN:  # then only where its answers leave it
        code = [
            node.lineno
            for statement in body
            for node in ast.walk(statement)
            if isinstance(node, ast.Return)
        ][-_LINES_SHOWN:]
    shown = {number: lines[number - 1] for number in code}
    indent = min((len(line) - len(line.lstrip()) for line in shown.values()), default=0)
    for number, line in shown.items():
        words += f"\n    {number:>4}  {safe(line[indent:][:_LONGEST_LINE]).rstrip()}"
    return words
