"""Calls of what a stage forbids, as they stand in the source: the checks need not reach them. Pure.

Looked through is what the stage's own functions and classes may reach, by name: what only tries
things out, as a cell or an `if __name__ == "__main__":` does, costs nothing, nor does a name in a
comment, a string or an annotation. What is called in a roundabout way is left to the worker, which
sees it when it happens.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from grader.run.facts import ForbiddenCall
from grader.run.worker.loader import without_magics
from grader.types.course import Course, Stage
from grader.types.submission import Submission
from grader.types.text import safe

_LARGEST = 1 << 18  # characters of a file or a cell that are looked through
_LONGEST_LINE = 200

Meaning = Callable[[str], str | None]
"""The one of a stage's forbidden names that a dotted name stands for, if any."""


def forbidden_calls(
    submission: Submission, course: Course, stage: Stage, meaning: Meaning
) -> tuple[ForbiddenCall, ...]:
    """The calls, the first of each name. What earlier stages ask for is judged with them alone."""
    texts = [(source, text) for source, text in _texts(submission) if len(text) <= _LARGEST]
    last_parts = [name.rpartition(".")[2] for name in stage.forbidden]
    if not any(part in text for _, text in texts for part in last_parts):
        return ()
    units = list(_units(texts, is_one=submission.cells is not None))
    if not any(True for unit in units for _ in unit.calls(meaning)):
        return ()
    own = {entry.name for entry in stage.entry_points}
    others = {entry.name for other in course.stages for entry in other.entry_points} - own
    found: dict[str, ForbiddenCall] = {}
    for unit in _reached(units, own, others):
        for name, node in unit.calls(meaning):
            found.setdefault(name, ForbiddenCall(name, unit.place(node)))
    return tuple(found.values())


def _texts(submission: Submission) -> Iterator[tuple[str, str]]:
    if submission.cells is not None:
        for number, cell in enumerate(submission.cells, start=1):
            yield f"cell {number}", cell
        return
    for name, data in submission.files.items():
        yield name, data.decode("utf-8-sig", "replace").replace("\r\n", "\n")


@dataclass
class _Names:
    """What the names of a module mean, as far as its imports and aliases tell."""

    imported: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)

    def read(self, tree: ast.Module) -> None:
        """Take down imports and definitions, wherever they are, and then what is another's name."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    self.imported[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    if alias.name == "*":
                        self.stars.append(node.module)
                    else:
                        name = f"{node.module}.{alias.name}"
                        self.imported[alias.asname or alias.name] = name
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.defined.add(node.name)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.Attribute)):
                for name in self.dotted(node.value)[:1]:
                    for target in node.targets:
                        if isinstance(target, ast.Name):
                            self.imported.setdefault(target.id, name)

    def dotted(self, node: ast.expr) -> list[str]:
        """What a name, or names joined by dots, may be in full; nothing where nobody knows."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id in self.defined:
            return []
        name = self.imported.get(node.id)
        firsts = [f"{star}.{node.id}" for star in self.stars] if name is None else [name]
        return [".".join([first, *reversed(parts)]) for first in firsts]


@dataclass(frozen=True)
class _Unit:
    """A function, a method, the rest of a class, or a statement, and the names that it defines."""

    source: str
    lines: list[str]
    names: _Names
    defines: frozenset[str]
    nodes: tuple[ast.AST, ...]
    bases: tuple[ast.expr, ...] = ()
    function: str = ""

    def calls(self, meaning: Meaning) -> Iterator[tuple[str, ast.expr]]:
        """The forbidden calls in it; who derives from a class makes objects of it."""
        targets = list(self.bases)
        for node in self._walk():
            if isinstance(node, ast.Call):
                targets.append(node.func)
            elif isinstance(node, ast.ClassDef):
                targets += node.bases
        for target in targets:
            for name in self.names.dotted(target):
                while name:
                    meant = meaning(name)
                    if meant is not None:
                        yield meant, target
                        break
                    name = name.rpartition(".")[0]  # a method of a class

    def mentions(self) -> set[str]:
        """The names of others that it may reach: no variables of its own."""
        read = {node.attr for node in self._walk() if isinstance(node, ast.Attribute)}
        loaded: set[str] = set()
        stored: set[str] = set()
        for node in self._walk():
            if isinstance(node, ast.Name):
                (loaded if isinstance(node.ctx, ast.Load) else stored).add(node.id)
            elif isinstance(node, ast.arg):
                stored.add(node.arg)
        named = loaded - stored if self.function else loaded
        named |= {base.id for base in self.bases if isinstance(base, ast.Name)}
        imported = [self.names.imported[name] for name in named if name in self.names.imported]
        return read | named | {name.rpartition(".")[2] for name in imported}

    def place(self, node: ast.expr) -> str:
        """Where the node is, in words."""
        inside = f", in {safe(self.function)}" if self.function else ""
        line = self.lines[node.lineno - 1].strip() if node.lineno <= len(self.lines) else ""
        where = f"\n  {safe(self.source)}, line {node.lineno}{inside}"
        return f"{where}\n    {safe(line[:_LONGEST_LINE])}"

    def _walk(self) -> Iterator[ast.AST]:
        return (each for node in self.nodes for each in ast.walk(node))


def _units(texts: Iterable[tuple[str, str]], *, is_one: bool) -> Iterator[_Unit]:
    """The units of the files, or of the cells of one notebook, whose names are the same."""
    trees = []
    shared = _Names()
    for source, text in texts:
        text = without_magics(text) if is_one else text
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # then it does not run either
        names = shared if is_one else _Names()
        names.read(tree)
        trees.append((source, text.split("\n"), names, tree))
    for source, lines, names, tree in trees:
        pending: list[ast.stmt] = list(tree.body)
        for node in pending:  # what stands in a block comes after the rest
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                own = frozenset([node.name])
                yield _Unit(source, lines, names, own, (node,), (), node.name)
            elif isinstance(node, ast.ClassDef):
                yield from _units_of_class(source, lines, names, node)
            elif isinstance(node, _BLOCKS) and not _asks_whether_it_is_run(node):
                for block in (node, *getattr(node, "handlers", ())):
                    for part in ("body", "orelse", "finalbody"):
                        pending += getattr(block, part, ())
            else:
                stored = frozenset(_stored(node))
                yield _Unit(source, lines, names, stored, (node,))


_BLOCKS = (ast.If, ast.Try, ast.With, ast.For, ast.While)


def _asks_whether_it_is_run(node: ast.stmt) -> bool:
    """Whether it is `if __name__ == "__main__":`, which it never is here."""
    test = ast.walk(node.test) if isinstance(node, ast.If) else ()
    return any(isinstance(each, ast.Name) and each.id == "__name__" for each in test)


def _stored(node: ast.stmt) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id


def _units_of_class(
    source: str, lines: list[str], names: _Names, node: ast.ClassDef
) -> Iterator[_Unit]:
    """The class without its methods, and the methods: those that nobody names belong to it."""
    rest: list[ast.AST] = [*node.decorator_list, *node.keywords]
    own = frozenset([node.name])
    for part in node.body:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            is_unnamed = part.name == "forward" or part.name.startswith("__")
            defines = own if is_unnamed else frozenset([part.name])
            yield _Unit(source, lines, names, defines, (part,), (), part.name)
        else:
            rest.append(part)
    yield _Unit(source, lines, names, own, tuple(rest), tuple(node.bases), node.name)


def _reached(units: Iterable[_Unit], own: set[str], others: set[str]) -> Iterator[_Unit]:
    """The units that the names `own` may lead to, not through those of `others`."""
    wanted = set(own)
    left = list(units)
    while True:
        reached = [unit for unit in left if unit.defines & wanted and not unit.defines & others]
        if not reached:
            return
        left = [unit for unit in left if unit not in reached]
        for unit in reached:
            yield unit
            wanted |= unit.mentions() - others
