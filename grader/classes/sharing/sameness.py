"""Finds answers that are the same code: a digest of a stage's code that nothing else can affect.

Two submissions with the same digest of a stage behave the same in that stage's checks. So code gets
a digest only if its source shows that no part of the submission, when imported or called, can reach
beyond its own values: into another module or Python itself. In a notebook, where other cells run in
the same process, a stage's own cells must also keep no state, and the other cells may only call
what these define. Unusual code gets no digest, and neither does code that cannot be parsed: a parse
error says nothing about what the code does.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import hashlib
import itertools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

from grader.run.worker.loader import without_magics
from grader.run.worker.names import LARGEST, read_names

_KNOWN = 1000  # sources to remember
_SHORT = 1 << 14  # characters of a source to remember
_PARTS_CAP = 200  # files or cells of a submission, at most
# Modules that keep no state by which one answer could affect another.
_PLAIN_MODULES = frozenset(
    {
        *("__future__", "collections", "copy", "dataclasses", "functools", "itertools", "math"),
        *("numpy", "operator", "random", "typing"),
    }
)
# Parts of libraries by which code reaches no other module. Any other part may lead to one.
_PLAIN_PARTS = frozenset(
    {
        *("collections.abc", "numpy.fft", "numpy.lib", "numpy.lib.stride_tricks", "numpy.linalg"),
        *("numpy.random", "numpy.typing", "torch.autograd", "torch.cuda", "torch.fft"),
        *("torch.linalg", "torch.nn", "torch.nn.functional"),
        *("torch.nn.init", "torch.nn.parameter", "torch.nn.utils", "torch.optim", "torch.random"),
        *("torch.profiler", "torch.special", "torch.utils", "torch.utils.data"),
    }
)
_CHANGEABLE = (dict, list, set, bytearray)
_PLAIN_BUILTINS = frozenset(
    {
        *("abs", "all", "any", "bool", "callable", "classmethod", "complex", "dict", "divmod"),
        *("enumerate", "filter", "float", "format", "frozenset", "int", "isinstance", "iter"),
        *("issubclass", "len", "list", "map", "max", "min", "next", "object", "pow", "print"),
        *("property", "range", "repr", "reversed", "round", "set", "slice", "sorted"),
        *("staticmethod", "str", "sum", "super", "tuple", "zip"),
        *("Ellipsis", "NotImplemented", "__name__", "display", "grade_here"),
    }
)
# Attributes that change something for all code, that run text as code, that read a file, or that
# give access to other modules, to frames or to a block that was entered by hand.
_WIDE_PREFIXES = (
    *("set_", "seterr", "setbufsize", "use_", "register_module_"),
    *("ag_", "cr_", "gi_", "tb_"),
)
_WIDE = frozenset(
    {
        *("as_strided", "attrgetter", "backends", "benchmark", "builtins", "compile", "copyreg"),
        *("cpp_extension", "ctypes", "ctypeslib", "delitem", "distributed"),
        *("DataSource", "evaluate_forward_ref", "setitem"),
        *("export", "f2py", "ForwardRef", "from_file", "fromfile", "fromregex", "func", "fx", "gc"),
        *("gen", "genfromtxt", "get_type_hints", "hub", "importlib", "inspect", "jit", "library"),
        *("load", "loadtxt", "make_dataclass", "memmap", "methodcaller", "multiprocessing"),
        *("open_memmap", "ops", "os", "overrides", "package", "register", "save", "serialization"),
        *("singledispatch", "singledispatchmethod", "subprocess", "sys", "testing", "threading"),
        *("total_ordering", "Type", "types", "update_wrapper", "warnings", "wraps"),
    }
)
_IMPORTS = (ast.Import, ast.ImportFrom)
_UNUSUAL = (ast.Global, ast.Await, ast.AsyncFor, ast.AsyncFunctionDef, ast.AsyncWith)
_YIELDS = (ast.Yield, ast.YieldFrom)
_OWN_DUNDERS = frozenset({"__all__", "__slots__"})  # special names that code may bind
_OF_CLASSES = frozenset(
    {"__class_getitem__", "__init_subclass__", "__new__"}
)  # their first argument is a class
# Methods by which `copy` gives a state to any object.
_OF_COPIES = frozenset({"__getattribute__", "__reduce__", "__reduce_ex__"})
_ON_SELF = frozenset({"getattr", "hasattr", "setattr"})  # only with `self` and a plain name
_DECORATORS = frozenset({"classmethod", "dataclass", "property", "staticmethod"})
_HARMLESS_CALLS = frozenset(
    {*("complex", "display", "float", "grade_here", "int", "namedtuple", "partial", "print")}
)
# What the names in these two lists must mean if imported; code may not give them another meaning.
_MEANT = {
    "dataclass": "dataclasses:dataclass",
    "namedtuple": "collections:namedtuple",
    "partial": "functools:partial",
}
_MAIN = ast.dump(ast.parse("__name__ == '__main__'", mode="eval").body)
_STILL = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.keyword),
    *(ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator, ast.expr_context),
)
_WORD = re.compile(r"[^\W\d]\w*")


def look(about: Mapping[str, Any]) -> dict[str, tuple[str, list[str], str | None]]:
    """The digest of a stage's code and the sources that hold it, for the stages that have one.

    The third is the first cell that imports annotations from __future__, if there is one: it also
    affects the cells after it.

    `sources` are names and texts of the files or cells; `kind` is "cells", "files" of a folder or a
    "script". `stages` holds for each slug the names that it asks for, the file that they are in
    (unless it is a notebook), and the forbidden names. `libraries` are the modules that the
    course's solutions import.
    """
    kind, sources = about["kind"], about["sources"]
    is_notebook = kind == "cells"
    if len(sources) > _PARTS_CAP or any(len(text) > LARGEST for _, text in sources):
        return {}
    parts: dict[str, _Part] = {}
    for name, text in sources:
        part = _part(text, is_notebook)
        if part is None:
            return {}
        parts[name] = part
    modules = _PLAIN_MODULES | set(about["libraries"])
    whole = (_Notebook if is_notebook else _Files)(parts, modules)
    if not whole.is_plain:
        return {}
    cells = parts if is_notebook else {}  # in a file, the import affects nothing else
    lazy = list(itertools.dropwhile(lambda name: not cells[name].is_lazy, cells))
    found = {}
    for slug, stage in about["stages"].items():
        forbidden = {name.rpartition(".")[2] for name in stage["forbidden"]}
        needed = whole.needed(stage["names"], stage["file"])
        if needed and not any(part.found.mentions & forbidden for part in parts.values()):
            # A file is imported by its name; a cell is not.
            named = [(parts[name].dump, "" if is_notebook else name) for name in needed[1:]]
            texts = [kind, parts[needed[0]].dump, *named, [name in lazy for name in needed]]
            found[slug] = _digest(repr(texts)), needed, next(iter(lazy), None)
    return found


@dataclass(frozen=True)
class _Part:
    """A file or a cell: the global names that it binds itself, imports, and needs from others.

    `hinted` are the names in its annotations, even those in strings, and `imported` says what an
    imported name means. It `is_plain` if nothing in it is unusual beside what was `found`, and
    `is_still` if running it only defines things that keep no state. It `is_lazy` if it imports
    annotations from __future__. Its `dump` is its syntax tree as text.
    """

    dump: str
    is_plain: bool
    is_lazy: bool
    is_still: bool
    own: frozenset[str]
    imported: Mapping[str, str]
    needed: frozenset[str]
    hinted: frozenset[str]
    found: _Finder


def _part(text: str, is_notebook: bool) -> _Part | None:
    """The facts about a source; those of a short one are cached."""
    return (_known_part if len(text) <= _SHORT else _read_part)(text, is_notebook)


def _read_part(text: str, is_notebook: bool) -> _Part | None:
    """The facts about a source; None if it cannot be parsed for whatever reason."""
    if is_notebook:
        text = without_magics(text)
    try:
        tree = ast.parse(text)
        own, imported, needed = read_names(text)
        own |= _stored_outside(tree)
        finder = _Finder()
        finder.look_through(tree)
        meanings = _meanings(tree)
        return _Part(
            dump=ast.dump(tree),
            is_plain=finder.is_plain and not (own & imported or any(map(_is_magic, own))),
            is_lazy="__future__" in finder.mentions and _is_lazy(text),
            is_still=all(map(_is_still_statement, tree.body)),
            own=frozenset(own),
            imported={name: meanings[name] for name in imported},
            needed=frozenset(needed),
            hinted=frozenset(_in_annotations(tree)),
            found=finder,
        )
    except Exception:  # noqa: BLE001 - Python's parser fails in many ways
        return None


def _is_lazy(text: str) -> bool:
    """Whether its annotations are not evaluated. Raises SyntaxError for a misplaced import."""
    code = compile(text, "", "exec", dont_inherit=True)
    return bool(code.co_flags & __future__.annotations.compiler_flag)


# Many submissions share sources, above all the unchanged stubs.
_known_part = lru_cache(maxsize=_KNOWN)(_read_part)


def _are_plain(parts: Sequence[_Part], modules: Set[str]) -> bool:
    """Whether these parts, which share their names, reach nothing but their own values."""
    imported = {name for part in parts for name in part.imported}
    own = {name for part in parts for name in part.own}
    bound = own | imported
    meanings: dict[str, set[str]] = {}
    for part in parts:
        for name, meaning in part.imported.items():
            meanings.setdefault(name, set()).add(meaning)
    known = _DECORATORS | _HARMLESS_CALLS
    stores = {name for part in parts for name in part.found.stores}
    return not own & known and all(
        part.is_plain
        and all(part.imported[name] == _MEANT.get(name) for name in known & part.imported.keys())
        and not part.found.asks & stores
        and not part.found.fills & imported
        and part.found.pries <= own - imported
        and all(map(_is_plain_builtin, part.needed - bound))
        and all(_is_plain_import(name, modules) for name in part.found.modules)
        and all(
            _is_plain_name(_meant(name, meaning))
            for name in part.found.dotted
            for meaning in meanings.get(name.partition(".")[0], ())
        )
        for part in parts
    )


def _digest(text: str) -> str:
    """The whole SHA-256: two answers that share 64 bits of one can be made in minutes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that run in the module's own scope."""
    inner = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef))
    yield node
    for name, value in ast.iter_fields(node):
        if not (inner and name in ("body", "type_params")):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    yield from _outside(each)


def _stored_outside(tree: ast.Module) -> set[str]:
    """The names that are assigned to in the module's own scope, or in a comprehension there."""
    names = (node for node in _outside(tree) if isinstance(node, ast.Name))
    return {name.id for name in names if not isinstance(name.ctx, ast.Load)}


def _meanings(tree: ast.Module) -> dict[str, str]:
    """What each imported name means. Raises ValueError if a name has two meanings."""
    meanings: dict[str, list[str]] = {}
    for node in _outside(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                meanings.setdefault(name, []).append(f"{alias.name} as {alias.asname}")
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                meanings.setdefault(name, []).append(f"{node.module}:{alias.name}")
    for name, found in meanings.items():
        if len(set(found)) > 1 and not all(each.endswith(" as None") for each in found):
            raise ValueError(f"{name} has two meanings")
    return {name: " ".join(dict.fromkeys(found)) for name, found in meanings.items()}


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
        """The cells that bind the names, and what these need; none if two cells bind one name."""
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
                return []  # which one counts depends on the order of running
            if name in names and None not in meanings:
                return []
            if binding and not taken & set(binding):
                taken.add(binding[0])
                part = self._parts[binding[0]]
                wanted += sorted({*part.own, *part.imported, *part.needed, *part.hinted})
        if not all(self._parts[cell].is_still for cell in taken):
            return []  # its state may change when another cell calls it
        own = {name for cell in taken for name in self._parts[cell].own}
        others = (part for cell, part in self._parts.items() if cell not in taken)
        if any(part.found.uses & own for part in others):
            return []  # it may change what the names mean
        return [cell for cell in self._parts if cell in taken]


class _Files:
    """Files, which import each other."""

    def __init__(self, parts: Mapping[str, _Part], modules: Set[str]) -> None:
        self._parts = parts
        stems = {file.removesuffix(".py") for file in parts}
        known = modules | stems
        stores = {name for part in parts.values() for name in part.found.stores}
        self.is_plain = (
            all(_are_plain([part], known) for part in parts.values())
            and not any(part.found.asks & stores for part in parts.values())
            # With packages, or with a library's name, it is unclear which file an import finds.
            and not any("/" in file for file in parts)
            and (modules | sys.stdlib_module_names).isdisjoint(stems)
        )

    def needed(self, names: Sequence[str], file: str) -> list[str]:
        """The file, and those that it imports, directly or not."""
        if file not in self._parts or not self._parts[file].own.issuperset(names):
            return []
        files = [file]
        for each in files:
            imported = {f"{name.partition('.')[0]}.py" for name in self._parts[each].found.modules}
            files += sorted(imported & self._parts.keys() - set(files))
        return files


# --- code that reaches only its own values -------------------------------------------------------


class _Finder:
    """Finds whatever is unusual in a source.

    `modules` are the full names of all imports, and `mentions` all names in the code. `fills` are
    the names whose items are assigned to, `pries` those whose private attributes are read, and
    `uses` those that are used in any other way than by calling them. `stores` are the methods that
    change their `self`, and `asks` the attributes read from anything but a `self`; `dotted` are
    names that are joined by dots. It `is_plain` if there is nothing else.
    """

    def __init__(self) -> None:
        self.is_plain = True
        self.modules: set[str] = set()
        self.mentions: set[str] = set()
        self.fills: set[str] = set()
        self.pries: set[str] = set()
        self.uses: set[str] = set()
        self.stores: set[str] = set()
        self.asks: set[str] = set()
        self.dotted: set[str] = set()

    def look_through(self, tree: ast.Module) -> None:
        """Collect everything."""
        outside = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
        every = list(ast.walk(tree))
        on_self = {
            id(node.func)
            for node in every
            if isinstance(node, ast.Call) and _is_plain_on_self(node.args)
        }
        harmless = {id(each) for node in every for each in _called(node)}
        supers = {id(each.func) for each in _usual_supers(every)}
        decorators = {id(each) for node in every for each in _decorators(node)}
        withs = any(isinstance(node, ast.With) for node in every)
        self.is_plain = _has_only_usual_self(every) and not (
            any(isinstance(node, _UNUSUAL) for node in every)
            # A block that a generator has entered stays open until the generator goes on.
            or (withs and any(isinstance(node, _YIELDS) for node in every))
            # A loop in a cell may never end.
            or any(isinstance(node, ast.While) for each in outside for node in ast.walk(each))
        )
        for node in every:
            if isinstance(node, _IMPORTS):
                self._import(node)
            elif isinstance(node, ast.Name):
                self._name(node, is_harmless=id(node) in harmless)
                self.is_plain &= node.id not in _ON_SELF or id(node) in on_self
                self.is_plain &= node.id != "super" or id(node) in supers
            elif isinstance(node, ast.Attribute):
                self._attribute(node)
            if "dataclass" in (getattr(node, "id", ""), getattr(node, "attr", "")):
                self.is_plain &= id(node) in decorators  # it changes the class that it decorates
            if isinstance(node, ast.MatchClass):
                for name in node.kwd_attrs:
                    self._attribute(ast.Attribute(node.cls, name, ast.Load()))
            elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                self.fills.add(_root(node))
            elif isinstance(node, ast.comprehension):
                self.is_plain &= not node.is_async
            elif isinstance(node, ast.ClassDef):
                self._class(node)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            name = alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
            self.modules.add(name)
            self.mentions.update(name.split("."))
            self.is_plain &= alias.name != "*" and not _is_magic(alias.asname or "")
            self.is_plain &= alias.name != "dataclass" or not alias.asname
        self.is_plain &= not getattr(node, "level", 0)

    def _name(self, node: ast.Name, *, is_harmless: bool) -> None:
        self.mentions.add(node.id)
        self.asks.add(node.id)  # inside its class a method is a plain name
        if not isinstance(node.ctx, ast.Load):
            self.is_plain &= not _is_magic(node.id)
        elif not is_harmless:
            self.uses.add(node.id)

    def _attribute(self, node: ast.Attribute) -> None:
        owner = node.value
        is_super = isinstance(owner, ast.Call) and _is_name(owner.func, "super")
        self.mentions.add(node.attr)
        self.dotted.add(_dotted(node))
        if not (_is_self(owner) or is_super):
            self.asks.add(node.attr)
        # Only the attributes of `self` certainly belong to the code itself.
        self.is_plain &= isinstance(node.ctx, ast.Load) or _is_self(owner)
        if not node.attr.startswith("_"):
            self.is_plain &= not _is_wide(node.attr) and not _may_format(node)
        elif isinstance(owner, ast.Name) and not node.attr.startswith("__"):
            if owner.id not in ("self", "cls"):
                self.pries.add(owner.id)
        else:  # only `super().__init__` is allowed
            self.is_plain &= is_super and node.attr == "__init__"

    def _class(self, node: ast.ClassDef) -> None:
        self.is_plain &= not node.keywords  # a metaclass sees a class as its `self`
        for method in node.body:
            if isinstance(method, ast.FunctionDef):
                self.is_plain &= method.name not in _OF_COPIES
                if any(map(_stores, ast.walk(method))):
                    self.stores.add(method.name)


def _called(node: ast.AST) -> Iterator[ast.expr]:
    """What a node calls or derives from: that does not change it."""
    if isinstance(node, ast.Call):
        yield node.func
    elif isinstance(node, ast.ClassDef):
        yield from node.bases


def _decorators(node: ast.AST) -> Iterator[ast.expr]:
    """What decorates a new function or class, plain or with keywords only."""
    for each in getattr(node, "decorator_list", ()):
        if not isinstance(each, ast.Call):
            yield each
        elif not each.args:
            yield each.func


def _stores(node: ast.AST) -> bool:
    """Whether it changes an attribute of `self`."""
    return _is_name(node, "setattr") or (
        isinstance(node, ast.Attribute)
        and not isinstance(node.ctx, ast.Load)
        and _root(node) == "self"
    )


def _may_format(node: ast.Attribute) -> bool:
    """Whether it may be a string's `format`, which reads attributes named in the string."""
    text = node.value.value if isinstance(node.value, ast.Constant) else "__"
    return node.attr in ("format", "format_map") and "__" in str(text)


def _in_annotations(tree: ast.Module) -> Iterator[str]:
    """The names in annotations, also in strings, because a dataclass looks some of them up."""
    for node in ast.walk(tree):
        for told in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            for each in ast.walk(told) if told is not None else ():
                if isinstance(each, ast.Name):
                    yield each.id
                elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield from _WORD.findall(each.value)


def _is_plain_import(dotted: str, modules: Set[str]) -> bool:
    first, *parts = dotted.split(".")
    is_wide = any(_is_wide(part) or part[:1] == "_" for part in parts)
    return first in modules and not is_wide and _is_plain_name(dotted)


def _dotted(node: ast.expr) -> str:
    """Names joined by dots, "" if it is anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _meant(dotted: str, meaning: str) -> str:
    """The full name for one that starts with an imported name, of one of the `_meanings`."""
    first, _, rest = dotted.partition(".")
    owner = first if meaning.endswith(" as None") else meaning.partition(" as ")[0]
    return f"{owner.replace(':', '.')}.{rest}"


@lru_cache(maxsize=_KNOWN)
def _is_plain_name(dotted: str) -> bool:
    """Whether a library's name leads to no other module and means nothing that may be changed.

    Nothing is known of a course's library that is not loaded.
    """
    first, *parts = dotted.split(".")
    thing: object = sys.modules.get(first)
    if thing is None:
        return first not in _PLAIN_MODULES or not parts
    for part in parts:
        if not isinstance(thing, ModuleType):
            thing = getattr(thing, "__dict__", {}).get(part)
            continue
        inside = sys.modules.get(f"{thing.__name__}.{part}")
        if part not in vars(thing) and inside is None:
            return False
        thing = vars(thing).get(part, inside)
        if isinstance(thing, ModuleType) and thing.__name__ not in _PLAIN_MODULES | _PLAIN_PARTS:
            return False
    return not isinstance(thing, _CHANGEABLE)


def _is_wide(name: str) -> bool:
    return name in _WIDE or name.startswith(_WIDE_PREFIXES) or name.endswith("Meta")


def _is_magic(name: str) -> bool:
    """Whether binding the name may change what Python does, or an object's class."""
    return name.startswith("__") and name not in _OWN_DUNDERS


def _is_plain_builtin(name: str) -> bool:
    """Whether an unbound name is harmless; so is one that does not exist."""
    known = getattr(builtins, name, None)
    is_error = isinstance(known, type) and issubclass(known, Exception)
    is_there = known is not None or name.startswith("__")
    return is_error or not is_there or name in _PLAIN_BUILTINS or name in _ON_SELF


def _is_self(node: ast.AST) -> bool:
    return _is_name(node, "self")


def _is_plain_on_self(args: Sequence[ast.expr]) -> bool:
    """Whether it is `self` and a name that Python itself cannot look up: "a", or f"a{...}"."""
    if len(args) < 2 or not _is_self(args[0]):
        return False
    name = args[1].values[0] if isinstance(args[1], ast.JoinedStr) else args[1]
    return isinstance(name, ast.Constant) and str(name.value)[:1] not in ("", "_")


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _usual_methods(nodes: Sequence[ast.AST]) -> Iterator[ast.FunctionDef]:
    """The methods that Python calls with an object of their class, and no code with a class."""
    for node in nodes:
        for method in node.body if isinstance(node, ast.ClassDef) else ():
            if not isinstance(method, ast.FunctionDef) or method.name in _OF_CLASSES:
                continue
            if all(_is_name(each, "property") for each in method.decorator_list):
                yield method


def _usual_supers(nodes: Sequence[ast.AST]) -> Iterator[ast.Call]:
    """The calls `super()` in methods of objects, and `super(Class, self)`."""
    for method in _usual_methods(nodes):
        for node in (each for statement in method.body for each in _outside(statement)):
            if not isinstance(node, ast.Call) or not _is_name(node.func, "super"):
                continue
            if not node.args or _is_self(node.args[-1]):
                yield node


def _has_only_usual_self(nodes: Sequence[ast.AST]) -> bool:
    """Whether `self` is always the first argument of methods, and never a class."""
    usual = {id(arg) for method in _usual_methods(nodes) for arg in method.args.args[:1]}
    return not any(
        (isinstance(node, ast.arg) and node.arg == "self" and id(node) not in usual)
        or (_is_self(node) and not isinstance(getattr(node, "ctx", None), ast.Load))
        or "self" in (getattr(node, key, "") for key in ("name", "asname", "rest"))
        for node in nodes
    )


def _root(node: ast.expr) -> str:
    """The name that attributes and items belong to."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


# --- code that keeps no state --------------------------------------------------------------------


def _is_still_statement(node: ast.stmt) -> bool:
    """Whether running it only defines things that keep no state."""
    if isinstance(node, (*_IMPORTS, ast.Pass)):
        return True
    if isinstance(node, ast.FunctionDef):
        return _has_still_decorators(node) and _has_still_defaults(node.args)
    if isinstance(node, ast.ClassDef):
        inside = all(map(_is_still_statement, node.body)) and all(map(_is_still, node.bases))
        return inside and _has_still_decorators(node)
    if isinstance(node, ast.If) and not node.orelse:
        return ast.dump(node.test) == _MAIN  # a submission's module is never called __main__
    if isinstance(node, ast.Assign):
        are_names = all(isinstance(target, ast.Name) for target in node.targets)
        return are_names and _is_still(node.value)
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.target, ast.Name) and _is_still(node.value or node.target)
    return isinstance(node, ast.Expr) and _is_still(node.value)


def _has_still_decorators(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether it has no decorators, or only some that keep nothing."""
    for each in node.decorator_list:
        call = each if isinstance(each, ast.Call) else ast.Call(each, [], [])
        if not (isinstance(call.func, ast.Name) and call.func.id in _DECORATORS):
            return False
        if call.args or not all(map(_is_still, call.keywords)):
            return False
    return True


def _has_still_defaults(arguments: ast.arguments) -> bool:
    return all(map(_is_still, [*arguments.defaults, *filter(None, arguments.kw_defaults)]))


def _is_still(node: ast.AST) -> bool:
    """Whether it is an unchangeable value, or a call that makes one."""
    if isinstance(node, ast.Call):
        is_harmless = isinstance(node.func, ast.Name) and node.func.id in _HARMLESS_CALLS
        return is_harmless and all(map(_is_still, [*node.args, *node.keywords]))
    if isinstance(node, ast.Lambda):
        return _has_still_defaults(node.args)
    return isinstance(node, _STILL) and all(map(_is_still, ast.iter_child_nodes(node)))
