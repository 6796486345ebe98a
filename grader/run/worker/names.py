"""The global names in a stranger's source, found without running it."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterator

from grader.run.worker.loader import without_magics

LARGEST = 1 << 18  # characters of a file or cell; a longer one is not examined
_COMPREHENSIONS = ("listcomp", "setcomp", "dictcomp", "genexpr")
ANY = "*"  # stands for names that cannot be determined
_DEFINERS = frozenset({"exec", "eval", "globals", "locals", "vars"})
_DEFINE_HERE = frozenset({"setattr", "__name__"})
_STAR = re.compile(r"\bfrom\b[^\n;#]*\bimport[ \t\\\n]*\*")
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def parsed(text: str, longest: int = LARGEST) -> ast.Module | None:
    """The syntax tree of a source; None if it is longer than this, or is not Python."""
    if len(text) > longest:
        return None
    try:
        return ast.parse(text)
    except UNREADABLE:
        return None


def names_of(cell: str) -> tuple[list[str], list[str], list[str]]:
    """The global names that a cell defines, those it imports, and those it needs from others.

    A source that is not Python has none. They include ANY if a cell defines or imports names that
    its text does not show: by exec() and the like, or by `from module import *`.
    """
    text = without_magics(cell)
    try:
        own, imported, needed = read_names(text)
    except UNREADABLE:
        return [], [], []
    unsaid = {ANY} if needed & _DEFINERS or needed >= _DEFINE_HERE else set()
    starred = {ANY} if _STAR.search(text) else set()
    return sorted(own - imported | unsaid), sorted(imported | starred), sorted(needed)


def read_names(source: str) -> tuple[set[str], set[str], set[str]]:
    """The same for valid Python; a name that is both defined and imported is in both.

    Raises whatever Python's parser raises.
    """
    top = symtable.symtable(source, "cell", "exec")
    symbols = top.get_symbols()
    imported = {symbol.get_name() for symbol in symbols if symbol.is_imported()}
    assigned = {symbol.get_name() for symbol in symbols if symbol.is_assigned()}
    own = assigned | set(_named_on_the_way(top))
    used = {symbol.get_name() for symbol in symbols if symbol.is_referenced()}
    pending = top.get_children()
    for table in pending:
        used |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
        pending.extend(table.get_children())
    return own, imported, used - own - imported


def _named_on_the_way(top: symtable.SymbolTable) -> Iterator[str]:
    """The global names that `:=` binds in comprehensions outside functions."""
    pending = [top]
    for table in pending:
        pending += [inner for inner in table.get_children() if inner.get_name() in _COMPREHENSIONS]
    for table in pending[1:]:
        for symbol in table.get_symbols():
            if symbol.is_global() and symbol.is_assigned():
                yield symbol.get_name()
