"""Which answers are the same code: a stage's code by a digest, where nothing else can have a say.

Two submissions whose digests of a stage agree do the same in that stage's checks. So a digest is
given only where that can be read off the source: where no part of the submission, run or called,
can reach beyond its own values, to another module's or to Python's own. Whatever is out of the
ordinary has none, and is run.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from grader.run.worker.loader import without_magics
from grader.run.worker.names import LARGEST, UNREADABLE, names_of

_KNOWN = 1000  # sources that are remembered
_SHORT = 1 << 14  # characters of one that is
_PARTS_CAP = 200  # files or cells of a submission
# Modules that keep no state which one answer could leave to another.
_PLAIN_MODULES = frozenset(
    {
        *("__future__", "collections", "copy", "dataclasses", "functools", "itertools", "math"),
        *("numpy", "random", "typing"),
    }
)
_PLAIN_BUILTINS = frozenset(
    {
        *("abs", "all", "any", "bool", "callable", "classmethod", "complex", "dict", "divmod"),
        *("enumerate", "filter", "float", "format", "frozenset", "int", "isinstance", "iter"),
        *("issubclass", "len", "list", "map", "max", "min", "next", "object", "pow", "print"),
        *("property", "range", "repr", "reversed", "round", "set", "slice", "sorted"),
        *("staticmethod", "str", "sum", "super", "tuple", "type", "zip"),
        *("Ellipsis", "NotImplemented", "__name__", "display", "grade_here"),
    }
)
_ON_SELF = frozenset({"getattr", "hasattr", "setattr"})  # of nothing but `self`
# Attributes of libraries by which something is changed for everybody, or that lead out of them.
_WIDE_PREFIXES = ("set_", "seterr", "setbufsize", "use_", "register_module_")
_WIDE = frozenset(
    {
        *("attrgetter", "backends", "builtins", "compile", "ctypes", "gc", "get_type_hints"),
        *("hub", "importlib", "inspect", "library", "load", "methodcaller", "multiprocessing"),
        *("operator", "ops", "os", "overrides", "register", "save", "singledispatch"),
        *("singledispatchmethod", "subprocess", "sys", "threading", "warnings"),
    }
)
_IMPORTS = (ast.Import, ast.ImportFrom)
_SCOPES = (ast.FunctionDef, ast.ClassDef, ast.NamedExpr, ast.Nonlocal, *_IMPORTS)
_UNUSUAL = (ast.Global, ast.Await, ast.AsyncFor, ast.AsyncFunctionDef, ast.AsyncWith)


def same_of(about: Mapping[str, Any]) -> dict[str, tuple[str, list[str]]]:
    """The digest of a stage's code and the sources that hold it, for the stages that have one.

    `sources` are names and texts of the files or cells, `kind` says what they are: "cells", "files"
    of a folder or one that is a "script". `stages` has for each slug the names that it asks for,
    the file that they are in, if it is no notebook, and the names that are forbidden. `modules` are
    those that the course's answers are written with.
    """
    kind, sources = about["kind"], about["sources"]
    is_notebook = kind == "cells"
    if len(sources) > _PARTS_CAP or any(len(text) > LARGEST for _, text in sources):
        return {}
    parts = {name: _part(text, is_notebook) for name, text in sources}
    modules = _PLAIN_MODULES | set(about["modules"])
    whole = (_Notebook if is_notebook else _Files)(parts, modules)
    if not whole.is_plain:
        return {}
    found = {}
    for slug, stage in about["stages"].items():
        forbidden = {name.rpartition(".")[2] for name in stage["forbidden"]}
        needed = whole.needed(stage["names"], stage["file"])
        if needed and not any(part.mentions & forbidden for part in parts.values()):
            # A file is called by its name, and does not run as a cell does.
            named = (parts[name].digest + ("" if is_notebook else name) for name in needed[1:])
            found[slug] = _digest(" ".join([kind, parts[needed[0]].digest, *named])), needed
    return found


@dataclass(frozen=True)
class _Part:
    """A file or a cell: the global names that it binds itself, imports, and needs of others.

    `imported` says what an imported name stands for, `modules` are all names that are imported, in
    full, and `mentions` all names that its code speaks of. `fills` are the names whose items are
    assigned to, `pries` those whose private attributes are read, and `touches` those of which any
    attribute or item is spoken of. It `is_plain` if nothing else in it is out of the ordinary.
    """

    digest: str
    is_plain: bool = False
    own: frozenset[str] = frozenset()
    imported: Mapping[str, str] = field(default_factory=dict)
    needed: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    mentions: frozenset[str] = frozenset()
    fills: frozenset[str] = frozenset()
    pries: frozenset[str] = frozenset()
    touches: frozenset[str] = frozenset()


def _part(text: str, is_notebook: bool) -> _Part:
    """What a source is; of a short one it is remembered."""
    return (_known_part if len(text) <= _SHORT else _read_part)(text, is_notebook)


def _read_part(text: str, is_notebook: bool) -> _Part:
    """What a source is. One that is not Python does nothing."""
    if is_notebook:
        text = without_magics(text)
    try:
        tree = ast.parse(text)
        own, imported, needed = names_of(text)
        finder = _Finder()
        finder.look_through(tree)
        meanings = _meanings(tree)
        for node in tree.body:
            for function in node.body if isinstance(node, ast.ClassDef) else [node]:
                if isinstance(function, ast.FunctionDef):
                    _rename_locals(function)
        return _Part(
            digest=_digest(ast.dump(tree)),
            is_plain=finder.is_plain,
            own=frozenset(own),
            imported={name: meanings[name] for name in imported if name in meanings},
            needed=frozenset(needed),
            modules=frozenset(finder.modules),
            mentions=frozenset(finder.mentions),
            fills=frozenset(finder.fills),
            pries=frozenset(finder.pries),
            touches=frozenset(finder.touches),
        )
    except (SyntaxError, ValueError):
        return _Part(_digest(text), is_plain=True)
    except UNREADABLE:
        return _Part("")


# Many hand in the same, beginning with what they were given.
_known_part = lru_cache(maxsize=_KNOWN)(_read_part)


def _are_plain(parts: Sequence[_Part], modules: Set[str]) -> bool:
    """Whether nothing in the parts, which share their names, reaches what is not their own."""
    imported = {name for part in parts for name in part.imported}
    own = {name for part in parts for name in part.own}
    bound = own | imported
    return all(
        part.is_plain
        and not part.fills & imported
        and part.pries <= own - imported
        and all(map(_is_plain_builtin, part.needed - bound))
        and all(_is_plain_import(name, modules) for name in part.modules)
        for part in parts
    )


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _meanings(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for."""
    meanings: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                before = "" if alias.asname else meanings.get(name, "")
                meanings[name] = f"{before} {alias.name}"
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                meanings[alias.asname or alias.name] = f"{node.module}:{alias.name}"
    return meanings


class _Notebook:
    """Cells, which share their names."""

    def __init__(self, parts: Mapping[str, _Part], modules: Set[str]) -> None:
        self._parts = parts
        self._binding: dict[str, list[str]] = {}
        for cell, part in parts.items():
            for name in {*part.own, *part.imported}:
                self._binding.setdefault(name, []).append(cell)
        self.is_plain = _are_plain(list(parts.values()), modules)

    def needed(self, names: Sequence[str], file: str) -> list[str]:
        """The cells that bind the names, and what these need; none where two disagree on a name."""
        wanted = list(names)
        asked: set[str] = set()
        taken: set[str] = set()
        for name in wanted:
            if name in asked:
                continue
            asked.add(name)
            binding = self._binding.get(name, [])
            meanings = {self._parts[cell].imported.get(name) for cell in binding}
            if len(binding) > 1 and (None in meanings or len(meanings) > 1):
                return []  # which one counts depends on when it is asked for
            if name in names and None not in meanings:
                return []
            if binding and not taken & set(binding):
                taken.add(binding[0])
                part = self._parts[binding[0]]
                wanted += sorted({*part.own, *part.imported, *part.needed})
        own = {name for cell in taken for name in self._parts[cell].own}
        others = (part for cell, part in self._parts.items() if cell not in taken)
        if any(part.touches & own for part in others):
            return []  # it may change what they stand for
        return [cell for cell in self._parts if cell in taken]


class _Files:
    """Files, which import each other."""

    def __init__(self, parts: Mapping[str, _Part], modules: Set[str]) -> None:
        self._parts = parts
        known = modules | {file.removesuffix(".py") for file in parts}
        self.is_plain = (
            all(_are_plain([part], known) for part in parts.values())
            # Of a package, or of a name that a library has too, who knows which one is imported?
            and not any("/" in file for file in parts)
            and modules.isdisjoint(file.removesuffix(".py") for file in parts)
        )

    def needed(self, names: Sequence[str], file: str) -> list[str]:
        """The file, and those that it imports."""
        if file not in self._parts or not self._parts[file].own.issuperset(names):
            return []
        files = [file]
        for each in files:
            imported = {f"{name.partition('.')[0]}.py" for name in self._parts[each].modules}
            files += sorted(imported & self._parts.keys() - set(files))
        return files


# --- what reaches no further than its own values -------------------------------------------------


class _Finder:
    """Finds in a source what is out of the ordinary."""

    def __init__(self) -> None:
        self.is_plain = True
        self.modules: set[str] = set()
        self.mentions: set[str] = set()
        self.fills: set[str] = set()
        self.pries: set[str] = set()
        self.touches: set[str] = set()

    def look_through(self, tree: ast.Module) -> None:
        """Find it all."""
        outside = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
        every = list(ast.walk(tree))
        on_self = {
            id(node.func)
            for node in every
            if isinstance(node, ast.Call) and node.args and _is_self(node.args[0])
        }
        self.is_plain = _has_only_usual_self(every) and not (
            any(isinstance(node, _UNUSUAL) for node in every)
            # A loop in a cell may never come to its end.
            or any(isinstance(node, ast.While) for each in outside for node in ast.walk(each))
        )
        for node in every:
            if isinstance(node, _IMPORTS):
                self._import(node)
            elif isinstance(node, ast.Name):
                self.mentions.add(node.id)
                self.is_plain &= node.id not in _ON_SELF or id(node) in on_self
            elif isinstance(node, ast.Attribute):
                self._attribute(node)
            elif isinstance(node, ast.Subscript):
                self.touches.add(_root(node))
                if not isinstance(node.ctx, ast.Load):
                    self.fills.add(_root(node))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            name = alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
            self.modules.add(name)
            self.mentions.update(name.split("."))
            self.is_plain &= alias.name != "*"
        self.is_plain &= not getattr(node, "level", 0)

    def _attribute(self, node: ast.Attribute) -> None:
        owner = node.value
        self.mentions.add(node.attr)
        self.touches.add(_root(node))
        # Of anything but `self` nobody knows whose it is.
        self.is_plain &= isinstance(node.ctx, ast.Load) or _root(node) == "self"
        if not node.attr.startswith("_"):
            self.is_plain &= not _is_wide(node.attr)
        elif isinstance(owner, ast.Name) and not node.attr.startswith("__"):
            if owner.id not in ("self", "cls"):
                self.pries.add(owner.id)
        else:  # but `super().__init__`
            is_super = isinstance(owner, ast.Call) and _is_name(owner.func, "super")
            self.is_plain &= is_super and node.attr == "__init__"


def _is_plain_import(dotted: str, modules: Set[str]) -> bool:
    first, *parts = dotted.split(".")
    return first in modules and not any(_is_wide(part) or part[:1] == "_" for part in parts)


def _is_wide(name: str) -> bool:
    return name in _WIDE or name.startswith(_WIDE_PREFIXES)


def _is_plain_builtin(name: str) -> bool:
    """Whether a name that nobody binds is harmless; one that is not there is."""
    known = getattr(builtins, name, None)
    is_error = isinstance(known, type) and issubclass(known, Exception)
    is_there = known is not None or name.startswith("__")
    return is_error or not is_there or name in _PLAIN_BUILTINS or name in _ON_SELF


def _is_self(node: ast.AST) -> bool:
    return _is_name(node, "self")


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _has_only_usual_self(nodes: Sequence[ast.AST]) -> bool:
    """Whether `self` is nothing but the first argument of methods."""
    usual = {
        id(arg)
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef)
        for arg in method.args.args[:1]
    }
    return not any(
        (isinstance(node, ast.arg) and node.arg == "self" and id(node) not in usual)
        or (_is_self(node) and not isinstance(getattr(node, "ctx", None), ast.Load))
        or "self" in (getattr(node, "name", ""), getattr(node, "asname", ""))
        for node in nodes
    )


def _root(node: ast.expr) -> str:
    """The name that attributes and items are of."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


# --- the same code -------------------------------------------------------------------------------


def _rename_locals(function: ast.FunctionDef) -> None:
    """Give the function's variables other names, in their order: no code can tell the difference.

    What is an argument, or more than the name of a variable anywhere in it, keeps its name. So does
    everything where there are scopes in it that variables of their own may have, or names that
    Python changes in a class. Decorators, defaults and annotations do not know the variables.
    """
    every = [node for statement in function.body for node in ast.walk(statement)]
    if any(isinstance(node, _SCOPES) for node in every):
        return
    if any(isinstance(node, ast.Name) and node.id.startswith("__") for node in every):
        return
    kept = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    kept |= {str(getattr(node, "name", "")) for node in every}
    kept |= {str(node.rest) for node in every if isinstance(node, ast.MatchMapping)}
    for node in every:
        if isinstance(node, ast.comprehension):
            kept |= {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    names: dict[str, str] = {}
    for node in every:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.setdefault(node.id, f"{len(names)}")  # no name begins with a digit
    for node in every:
        if isinstance(node, ast.Name) and node.id in names and node.id not in kept:
            node.id = names[node.id]
