"""The global names of a stranger's source, which is read and not run."""

from __future__ import annotations

import symtable
from collections.abc import Iterator

from grader.run.worker.loader import without_magics

LARGEST = 1 << 18  # characters of a file or a cell that are looked through
_COMPREHENSIONS = ("listcomp", "setcomp", "dictcomp", "genexpr")
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def names_of(cell: str) -> tuple[list[str], list[str], list[str]]:
    """The global names that a cell defines, those it imports, and those it needs of others.

    What is not Python has none.
    """
    try:
        top = symtable.symtable(without_magics(cell), "cell", "exec")
    except UNREADABLE:
        return [], [], []
    symbols = top.get_symbols()
    imported = {symbol.get_name() for symbol in symbols if symbol.is_imported()}
    assigned = {symbol.get_name() for symbol in symbols if symbol.is_assigned()}
    own = (assigned | set(_named_on_the_way(top))) - imported
    used = {symbol.get_name() for symbol in symbols if symbol.is_referenced()}
    pending = top.get_children()
    for table in pending:
        used |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
        pending.extend(table.get_children())
    return sorted(own), sorted(imported), sorted(used - own - imported)


def _named_on_the_way(top: symtable.SymbolTable) -> Iterator[str]:
    """The global names that `:=` gives in comprehensions outside of functions."""
    pending = [top]
    for table in pending:
        pending += [inner for inner in table.get_children() if inner.get_name() in _COMPREHENSIONS]
    for table in pending[1:]:
        for symbol in table.get_symbols():
            if symbol.is_global() and symbol.is_assigned():
                yield symbol.get_name()
