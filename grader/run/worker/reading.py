"""Examines source that a stranger wrote, without running any of it.

A worker does that, because only there it is bounded: Python's own parser takes minutes and many
gigabytes for some files of a few hundred kilobytes.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from grader.run.worker.loader import stored_names, without_magics
from grader.run.worker.names import LARGEST, names_of, parsed

_LINES_SHOWN = 8
_LONGEST_LINE = 200
_PARTS_CAP = 20  # of a dotted name, at most
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def look(about: dict[str, Any]) -> Any:
    """The answer to a request about sources, as JSON data."""
    if about["what"] == "names":
        return [names_of(source) for source in about["cells"]]
    if about["what"] == "place":
        return place_of(about["sources"], about["target"], is_notebook=about["is_notebook"])
    if about["what"] == "sent":
        return _sent(about["modules"]).look(about)
    return forbidden_calls(
        about["sources"],
        own=set(about["own"]),
        others=set(about["others"]),
        forbidden=about["forbidden"],
        is_notebook=about["is_notebook"],
    )


def _sent(modules: Mapping[str, str]) -> Any:
    """The last of the kit's own modules in a request, which holds those that are seldom needed."""
    for name, text in modules.items():
        if name not in sys.modules:
            module = sys.modules[name] = ModuleType(name)
            module.__path__ = []  # some are packages
            exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    return sys.modules[name]


# --- the place of a definition -------------------------------------------------------------------


def place_of(sources: Iterable[tuple[str, str]], target: str, *, is_notebook: bool = False) -> str:
    """The lines of the body of `target`, a function or "Class.method", in words; "" if unknown.

    The first source (a name and a text) that defines it counts. A body of a few lines is quoted; of
    a longer one, the lines that return. It is unknown if the name means something else in the end.
    """
    for name, text in sources:
        text = without_magics(text) if is_notebook and len(text) <= LARGEST else text
        tree = parsed(text)
        found = _definition(tree, target.split(".")) if tree is not None else None
        if found is not None:
            return _words(name, text, found) if isinstance(found, _Definition) else ""
    return ""


def _definition(tree: ast.Module | ast.ClassDef, names: list[str]) -> ast.stmt | None:
    """The innermost existing definition in the path `names`: the class if its method is missing.

    If it is assigned to later, the assignment, unless that wraps the definition.
    """
    for node in reversed(tree.body):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and names[0] in stored_names(node):
            value = ast.walk(node.value) if node.value is not None else ()
            if not any(isinstance(each, ast.Name) and each.id == names[0] for each in value):
                return node
        if isinstance(node, _Definition) and node.name == names[0]:
            if isinstance(node, ast.ClassDef) and names[1:]:
                return _definition(node, names[1:]) or node
            return node
    return None


def _words(source: str, text: str, definition: _Definition) -> str:
    body = definition.body
    if len(body) > 1 and ast.get_docstring(definition, clean=False) is not None:
        body = body[1:]
    first, last = body[0].lineno, body[-1].end_lineno or body[-1].lineno
    if isinstance(definition, ast.ClassDef):
        first = last = definition.lineno
    which = f"line {first}" if first == last else f"lines {first} to {last}"
    words = f"\n  look at   {source}, {which}, in {definition.name}"
    lines = text.split("\n")
    code = [
        number
        for number in range(first, last + 1)
        if lines[number - 1].strip() and not lines[number - 1].lstrip().startswith("#")
    ]
    if len(code) > _LINES_SHOWN:  # a long body: only where it returns
        code = [
            node.lineno
            for statement in body
            for node in ast.walk(statement)
            if isinstance(node, ast.Return)
        ][-_LINES_SHOWN:]
    shown = {number: lines[number - 1] for number in code}
    indent = min((len(line) - len(line.lstrip()) for line in shown.values()), default=0)
    for number, line in shown.items():
        words += f"\n    {number:>4}  {line[indent:][:_LONGEST_LINE]}".rstrip()
    return words


# --- calls of what is forbidden ------------------------------------------------------------------


def forbidden_calls(
    sources: Iterable[tuple[str, str]],
    *,
    own: set[str],
    others: set[str],
    forbidden: Sequence[str],
    is_notebook: bool,
) -> list[dict[str, Any]] | None:
    """The forbidden calls that the functions and classes `own` may reach, by name.

    It returns the first call of each name, with its line. Code that only tries things out, such
    as a cell or `if __name__ == "__main__":`, is not reached, and a name in a comment, a string
    or an annotation is not a call. It does not enter the functions `others`, which belong to other
    stages. It misses indirect calls; the watch at run time notices those. It returns None if a
    source that has one of the names is too long.
    """
    texts = [
        (source, without_magics(text) if is_notebook and len(text) <= LARGEST else text)
        for source, text in sources
    ]
    last_parts = {name.rpartition(".")[2] for name in forbidden}
    if any(len(text) > LARGEST and any(map(text.__contains__, last_parts)) for _, text in texts):
        return None
    if not any(_names_one(text, last_parts) for _, text in texts):
        return []
    meanings = _Meanings(forbidden)
    units = list(_units(texts, is_notebook))
    found: dict[str, dict[str, Any]] = {}
    for unit in _reached(units, own, others - own):
        for name, node in unit.calls(meanings):
            found.setdefault(name, {"name": name, "frames": [unit.frame(node)]})
    return list(found.values())


def _names_one(text: str, names: set[str]) -> bool:
    """Whether one of the names appears outside comments and strings."""
    tree = parsed(text) if any(name in text for name in names) else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Attribute) and node.attr in names:
            return True
        if isinstance(node, ast.Name) and node.id in names:
            return True
        if isinstance(node, ast.alias) and node.name.rpartition(".")[2] in names:
            return True
    return False


class _Meanings:
    """Finds the forbidden name that a dotted name stands for: two names may mean one object."""

    def __init__(self, forbidden: Sequence[str]) -> None:
        self._things = {name: _thing(name) for name in forbidden}
        self._known: dict[str, str | None] = {}

    def of(self, dotted: str) -> str | None:
        if dotted not in self._known:
            thing = None if dotted in self._things else _thing(dotted)
            same = [name for name, one in self._things.items() if thing is one is not None]
            self._known[dotted] = dotted if dotted in self._things else next(iter(same), None)
        return self._known[dotted]


def _thing(dotted: str) -> object:
    """The object that a dotted name means in this process, without importing anything."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        thing: object = sys.modules.get(".".join(parts[:count]))
        if thing is not None:
            for part in parts[count:]:
                thing = getattr(thing, "__dict__", {}).get(part)
            return thing
    return None


@dataclass
class _Names:
    """What the names of a module mean, as far as its imports and aliases show.

    `files` are the submission's, by the names under which they are imported. `imported` maps a name
    to the full name it stands for, and `stars` holds the modules that are imported with `*`.
    """

    files: frozenset[str] = frozenset()
    imported: dict[str, str] = field(default_factory=dict)
    stars: dict[str, None] = field(default_factory=dict)
    defined: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)

    def read(self, tree: ast.Module) -> None:
        """Collect all imports and definitions, and then the aliases."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    self.imported[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    if alias.name != "*":
                        name = f"{node.module}.{alias.name}"
                        self.imported[alias.asname or alias.name] = name
                    elif len(self.stars) < _PARTS_CAP:
                        self.stars[node.module] = None
            elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                self.defined.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.variables.add(node.id)
            elif isinstance(node, ast.arg):
                self.variables.add(node.arg)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.Attribute)):
                for name in self.dotted(node.value)[:1]:
                    for target in node.targets:
                        if isinstance(target, ast.Name):
                            self.imported.setdefault(target.id, name)

    def is_in_a_file(self, node: ast.Attribute) -> bool:
        """Whether it is an attribute of one of the submission's files, or of its definitions."""
        owner = node.value
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        name = self.imported.get(owner.id, "") if isinstance(owner, ast.Name) else ""
        return name.partition(".")[0] in self.files

    def dotted(self, node: ast.expr) -> list[str]:
        """The full names that a name, or names joined by dots, may mean; none if unknown."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < _PARTS_CAP:
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id in self.defined:
            return []
        name = self.imported.get(node.id)
        places = [*self.stars, *([] if node.id in self.variables else ["builtins"])]
        firsts = [f"{place}.{node.id}" for place in places] if name is None else [name]
        names = [".".join([first, *reversed(parts)]) for first in firsts]
        return [name for name in names if name.count(".") < _PARTS_CAP]


@dataclass(frozen=True, eq=False)
class _Text:
    """A file or a cell: its name, its text and its tree, and what the names in it mean."""

    source: str
    text: str
    tree: ast.Module
    names: _Names


@dataclass(frozen=True, eq=False)
class _Unit:
    """A function, a method, the rest of a class, or a statement, and the names that it defines.

    A definition `within` a class has a dot before its name, because other code reaches it only as
    an attribute.
    """

    place: _Text
    defines: frozenset[str]
    nodes: tuple[ast.AST, ...]
    bases: tuple[ast.expr, ...] = ()
    function: str = ""
    within: str = ""

    def calls(self, meanings: _Meanings) -> Iterator[tuple[str, ast.expr]]:
        """The forbidden calls in it; deriving from a class counts as a call of it."""
        targets = list(self.bases)
        for node in self._walk():
            if isinstance(node, ast.Call):
                targets.append(node.func)
            elif isinstance(node, ast.ClassDef):
                targets += node.bases
        for target in targets:
            for name in self.place.names.dotted(target):
                while name:
                    meant = meanings.of(name)
                    if meant is not None:
                        yield meant, target
                        break
                    name = name.rpartition(".")[0]  # a method of a class

    def mentions(self) -> set[str]:
        """The names of other units that it may reach, without its own variables.

        An attribute may be a method, or a name in another of the submission's files.
        """
        attributes = [node for node in self._walk() if isinstance(node, ast.Attribute)]
        read = {f".{node.attr}" for node in attributes}
        read |= {node.attr for node in attributes if self.place.names.is_in_a_file(node)}
        loaded: set[str] = set()
        stored: set[str] = set()
        for node in self._walk():
            if isinstance(node, ast.Name):
                (loaded if isinstance(node.ctx, ast.Load) else stored).add(node.id)
            elif isinstance(node, ast.arg):
                stored.add(node.arg)
        named = loaded - stored if self.function else loaded
        named |= {base.id for base in self.bases if isinstance(base, ast.Name)}
        known = self.place.names.imported
        imported = [known[name] for name in named if name in known]
        own = {f".{name}" for name in named} if self.within else set()
        return read | own | named | {name.rpartition(".")[2] for name in imported}

    def frame(self, node: ast.expr) -> dict[str, Any]:
        """The place of the node, in the form of a traceback's frame."""
        text = "".join(self.place.text.split("\n")[node.lineno - 1 : node.lineno]).strip()
        place = {"file": self.place.source, "line": node.lineno}
        return {**place, "function": self.function, "text": text[:_LONGEST_LINE]}

    def _walk(self) -> Iterator[ast.AST]:
        return (each for node in self.nodes for each in ast.walk(node))


def _units(texts: Iterable[tuple[str, str]], is_notebook: bool) -> Iterator[_Unit]:
    """The units of the files, or of the cells of a notebook, which share their names."""
    texts = list(texts)
    files = frozenset(source.partition("/")[0].removesuffix(".py") for source, _ in texts)
    shared = _Names()
    places = []
    for source, text in texts:
        tree = parsed(text)
        if tree is not None:
            names = shared if is_notebook else _Names(files)
            names.read(tree)
            places.append(_Text(source, text, tree, names))
    replaced = _replaced(places)
    for place in places:
        for node in _statements(place.tree.body):
            if node in replaced:
                continue
            if isinstance(node, _FUNCTIONS):
                yield _Unit(place, frozenset([node.name]), (node,), (), node.name)
            elif isinstance(node, ast.ClassDef):
                yield from _units_of_class(place, node)
            else:
                yield _Unit(place, frozenset(stored_names(node)), (node,))


def _replaced(places: Iterable[_Text]) -> set[ast.stmt]:
    """The definitions that a later one of their name in the file or notebook replaces."""
    last: dict[tuple[int, str], ast.stmt] = {}
    replaced = set()
    for place in places:
        for node in place.tree.body:
            if isinstance(node, _Definition):
                key = id(place.names), node.name
                replaced |= {last[key]} if key in last else set()
                last[key] = node
    return replaced


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, with those in its blocks that are run in place of the blocks."""
    pending = list(body)
    for node in pending:  # the contents of a block come after the rest
        if not isinstance(node, _BLOCKS) or _asks_whether_it_is_run(node):
            yield node
            continue
        for block in (node, *getattr(node, "handlers", ())):
            for part in ("body", "orelse", "finalbody"):
                pending += getattr(block, part, ())


_BLOCKS = (ast.If, ast.Try, ast.With, ast.For, ast.While)


def _asks_whether_it_is_run(node: ast.stmt) -> bool:
    """Whether it is `if __name__ == "__main__":`, which is never true here."""
    test = ast.walk(node.test) if isinstance(node, ast.If) else ()
    return any(isinstance(each, ast.Name) and each.id == "__name__" for each in test)


def _units_of_class(place: _Text, node: ast.ClassDef) -> Iterator[_Unit]:
    """The class, with `forward` and special methods, and each of its other methods."""
    rest: list[ast.AST] = [*node.decorator_list, *node.keywords]
    own = frozenset([node.name])
    for part in node.body:
        if isinstance(part, _FUNCTIONS):
            is_unnamed = part.name == "forward" or part.name.startswith("__")
            defines = own if is_unnamed else frozenset([f".{part.name}"])
            yield _Unit(place, defines, (part,), (), part.name, node.name)
        else:
            rest.append(part)
    yield _Unit(place, own, tuple(rest), tuple(node.bases), node.name, node.name)


def _reached(units: Iterable[_Unit], own: set[str], others: set[str]) -> Iterator[_Unit]:
    """The units that the names `own` may lead to, without passing through `others`.

    A method is reached by its name only if its class is too: another class may have such a method.
    """
    definers: dict[str, list[_Unit]] = {}
    for unit in units:
        is_others = unit.within in others or unit.defines & others
        for name in unit.defines if not is_others else ():
            definers.setdefault(name, []).append(unit)
    known = set(own)
    pending = sorted(own)
    reached: set[_Unit] = set()
    waiting: dict[str, list[_Unit]] = {}  # methods, by their class
    for name in pending:
        for unit in (*definers.get(name, ()), *waiting.pop(name.removeprefix("."), ())):
            if unit in reached:
                continue
            if name.startswith(".") and not {unit.within, f".{unit.within}"} & known:
                waiting.setdefault(unit.within, []).append(unit)
                continue
            reached.add(unit)
            yield unit
            more = unit.mentions() - others - known
            known |= more
            pending += sorted(more)
