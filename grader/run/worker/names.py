"""The global names of a stranger's source, which is read and not run."""

from __future__ import annotations

import symtable

from grader.run.worker.loader import without_magics

LARGEST = 1 << 18  # characters of a file or a cell that are looked through
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
    own = {symbol.get_name() for symbol in symbols if symbol.is_assigned()} - imported
    used = {symbol.get_name() for symbol in symbols if symbol.is_referenced()}
    pending = top.get_children()
    for table in pending:
        used |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
        pending.extend(table.get_children())
    return sorted(own), sorted(imported), sorted(used - own - imported)
