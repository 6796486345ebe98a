"""Finds the to-dos in a stage's files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from grader.authoring.verify.author_files import files_of, tree_of
from grader.authoring.verify.types import Todo
from grader.types.course import Stage

_TODO = re.compile(r"\bTODO\b|\b(?i:todo)\s*:")


def stage_todos(stage: Stage) -> tuple[Todo, ...]:
    """The to-dos of `stage`, file by file, without the stub, which repeats the solution's."""
    files = [file for file in files_of(stage) if file != stage.exercise_file]
    return tuple(todo for file in files for todo in _todos(stage.place(file), file.read_bytes()))


def is_unwritten(file: Path) -> bool:
    """Whether a file still raises NotImplementedError where a to-do says that code is missing."""
    raised = [node.exc for node in ast.walk(tree_of(file)) if isinstance(node, ast.Raise)]
    missing = any(isinstance(exc, ast.Name) and exc.id == "NotImplementedError" for exc in raised)
    return missing and any(True for _ in _todos("", file.read_bytes()))


def _todos(place: str, data: bytes) -> Iterator[Todo]:
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        if _TODO.search(line):
            yield Todo(place, number, line.strip())
