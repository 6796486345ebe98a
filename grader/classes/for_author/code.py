"""The code of a wrong answer as a misconception's: what it needs, without words. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from grader.classes.report.student import without
from grader.run.worker.loader import without_magics
from grader.run.worker.names import UNREADABLE
from grader.types.text import is_quick_to_parse, safe

_LONGEST = 8000  # characters
_LARGEST = 50_000  # characters of all sources: a cell may be parsed a hundred times
_IMPORTS = (ast.Import, ast.ImportFrom)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def wrong_code(sources: Iterable[str], entry: str, name: str, student: str) -> str:
    """The definition of an entry point under another `name`, below what it uses.

    `sources` are a file or the cells of a notebook. The code has no comment, no docstring and not
    the student's name; it is "" if there is no such definition, or if it is too long or no Python.
    """
    try:
        needed = ast.Module(_needed([*_statements(sources)], entry), [])
        _replace_student(needed, entry, student)
        for node in ast.walk(needed):
            _bare(node, entry, name)
        text = safe(ast.unparse(needed))
    except UNREADABLE:
        return ""
    return text if len(text) <= _LONGEST else ""


def _statements(sources: Iterable[str]) -> Iterator[ast.stmt]:
    """The statements of all sources that are Python; none if the sources are too long."""
    sources = list(sources)
    is_long = sum(map(len, sources)) > _LARGEST
    for source in filter(is_quick_to_parse, () if is_long else sources):
        with suppress(*UNREADABLE):
            yield from ast.parse(without_magics(source)).body


def _needed(statements: Sequence[ast.stmt], entry: str) -> list[ast.stmt]:
    """The statements that define the entry point and, directly or not, what it uses."""
    defined: dict[str, ast.stmt] = {}
    for node in statements:
        for name in _bound(node):
            if name not in defined or not isinstance(node, _IMPORTS):  # each cell may import again
                defined[name] = node
    if not isinstance(defined.get(entry), _NAMED):
        return []
    wanted = [entry]
    nodes: set[ast.stmt] = set()  # one may define thousands of names
    for name in wanted:  # the loop itself appends to it
        node = defined[name]
        if node not in nodes:
            nodes.add(node)
            names = (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
            wanted += [used for used in names if used in defined]
    return [node for node in statements if node in nodes]


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement at the top level defines."""
    if isinstance(node, _NAMED):
        yield node.name
    elif isinstance(node, _IMPORTS):
        yield from (each.asname or each.name.partition(".")[0] for each in node.names)
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _replace_student(needed: ast.Module, entry: str, student: str) -> None:
    """Replace the student's name in texts, and where the code itself gives it to something."""
    own = {word for node in ast.walk(needed) if _binds(node) for word in _words(node)} - {entry}
    for node in ast.walk(needed):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = without(student, "student", node.value)
        elif student in own and student in _words(node):
            for field, value in ast.iter_fields(node):
                setattr(node, field, "student" if value == student else value)


def _binds(node: ast.AST) -> bool:
    is_store = isinstance(getattr(node, "ctx", None), ast.Store)
    return is_store or isinstance(node, (*_NAMED, ast.arg))


def _words(node: ast.AST) -> set[str]:
    """The names in a node itself: of a variable, a parameter, an attribute or a definition."""
    found = {getattr(node, field, None) for field in ("id", "arg", "attr", "name")}
    return {word for word in found if isinstance(word, str)}


def _bare(node: ast.AST, entry: str, name: str) -> None:
    """Remove a docstring, and rename the entry point."""
    if isinstance(node, _NAMED):
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if node.name == entry:
            node.name = name
    elif isinstance(node, ast.Name) and node.id == entry:
        node.id = name
