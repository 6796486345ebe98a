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
import hashlib
import itertools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from grader.classes.sharing.plain_code import (
    DECORATORS,
    HARMLESS_CALLS,
    PLAIN_MODULES,
    Finder,
    is_magic,
    is_plain_builtin,
    is_plain_import,
    is_plain_name,
    is_still_statement,
    outside,
)
from grader.run.worker.loader import without_magics
from grader.run.worker.names import LARGEST, read_names

_KNOWN = 1000  # sources to remember
_SHORT = 1 << 14  # characters of a source to remember
_PARTS_CAP = 200  # files or cells of a submission, at most
# What the names in these two lists must mean if imported; code may not give them another meaning.
_MEANT = {
    "dataclass": "dataclasses:dataclass",
    "namedtuple": "collections:namedtuple",
    "partial": "functools:partial",
}
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
    modules = PLAIN_MODULES | set(about["libraries"])
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
    found: Finder


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
        finder = Finder()
        finder.look_through(tree)
        meanings = _meanings(tree)
        return _Part(
            dump=ast.dump(tree),
            is_plain=finder.is_plain and not (own & imported or any(map(is_magic, own))),
            is_lazy="__future__" in finder.mentions and _is_lazy(text),
            is_still=all(map(is_still_statement, tree.body)),
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
    known = DECORATORS | HARMLESS_CALLS
    stores = {name for part in parts for name in part.found.stores}
    return not own & known and all(
        part.is_plain
        and all(part.imported[name] == _MEANT.get(name) for name in known & part.imported.keys())
        and not part.found.asks & stores
        and not part.found.fills & imported
        and part.found.pries <= own - imported
        and all(map(is_plain_builtin, part.needed - bound))
        and all(is_plain_import(name, modules) for name in part.found.modules)
        and all(
            is_plain_name(_meant(name, meaning))
            for name in part.found.dotted
            for meaning in meanings.get(name.partition(".")[0], ())
        )
        for part in parts
    )


def _digest(text: str) -> str:
    """The whole SHA-256: two answers that share 64 bits of one can be made in minutes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _stored_outside(tree: ast.Module) -> set[str]:
    """The names that are assigned to in the module's own scope, or in a comprehension there."""
    names = (node for node in outside(tree) if isinstance(node, ast.Name))
    return {name.id for name in names if not isinstance(name.ctx, ast.Load)}


def _meanings(tree: ast.Module) -> dict[str, str]:
    """What each imported name means. Raises ValueError if a name has two meanings."""
    meanings: dict[str, list[str]] = {}
    for node in outside(tree):
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
            and (modules | sys.stdlib_module_names | sys.modules.keys()).isdisjoint(stems)
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


def _in_annotations(tree: ast.Module) -> Iterator[str]:
    """The names in annotations, also in strings, because a dataclass looks some of them up."""
    for node in ast.walk(tree):
        for told in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            for each in ast.walk(told) if told is not None else ():
                if isinstance(each, ast.Name):
                    yield each.id
                elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield from _WORD.findall(each.value)


def _meant(dotted: str, meaning: str) -> str:
    """The full name for one that starts with an imported name, of one of the `_meanings`."""
    first, _, rest = dotted.partition(".")
    owner = first if meaning.endswith(" as None") else meaning.partition(" as ")[0]
    return f"{owner.replace(':', '.')}.{rest}"
