"""Finds the to-dos in a stage's files and in its table in course.toml."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from grader.authoring.verify.author_files import files_of, tree_of
from grader.authoring.verify.types import Todo
from grader.read.course_file import FILE_NAME
from grader.types.course import Stage

_TODO = re.compile(r"\bTODO\b|\b(?i:todo)\s*:")
_TABLE = re.compile(r"\s*\[\[\s*(\w+)\s*\]\]")


def stage_todos(stage: Stage) -> tuple[Todo, ...]:
    """The to-dos of `stage`, file by file, without the stub, which repeats the solution's."""
    found = []
    toml = stage.root / FILE_NAME
    own = set(_table_lines(toml.read_text(encoding="utf-8-sig"), stage.slug))
    found += [todo for todo in _todos(FILE_NAME, toml.read_bytes()) if todo.line in own]
    for file in files_of(stage):
        if file != stage.exercise_file:
            found += _todos(stage.place(file), file.read_bytes())
    return tuple(found)


def is_unwritten(file: Path) -> bool:
    """Whether a file still raises NotImplementedError where a to-do says that code is missing."""
    raised = [node.exc for node in ast.walk(tree_of(file)) if isinstance(node, ast.Raise)]
    missing = any(isinstance(exc, ast.Name) and exc.id == "NotImplementedError" for exc in raised)
    return missing and any(True for _ in _todos("", file.read_bytes()))


def _todos(place: str, data: bytes) -> Iterator[Todo]:
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        if _TODO.search(line):
            yield Todo(place, number, line.strip())


def _table_lines(text: str, slug: str) -> Iterator[int]:
    """The line numbers of a stage's table in the text of a course.toml."""
    tables: list[list[int]] = [[]]
    own: list[int] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if _TABLE.match(line):
            tables.append([])
        tables[-1].append(number)
        if re.match(rf"""\s*slug\s*=\s*["']{slug}["']""", line):
            own = tables[-1]
    yield from own or ()
