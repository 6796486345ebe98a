"""A source as text and as a syntax tree: where a node is, and what it says."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import Any

from grader.diagnosis.repair.edits.edit import Change

_ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Dict)


class Source:
    """The `text` of one source, and the parent of each node of its tree."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text = text
        self.parents: dict[ast.AST, Any] = {
            child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
        }
        self._lines = text.split("\n")
        starts = itertools.accumulate((len(line) + 1 for line in self._lines), initial=0)
        self._starts = list(starts)

    def span(self, node: Any) -> tuple[int, int]:
        """The characters of a node: the first, and the one after the last."""
        return (
            self._offset(node.lineno, node.col_offset),
            self._offset(node.end_lineno, node.end_col_offset),
        )

    def _offset(self, line: int, column: int) -> int:
        text = self._lines[line - 1]
        if not text.isascii():  # columns count bytes
            column = len(text.encode()[:column].decode("utf-8", "ignore"))
        return self._starts[line - 1] + column

    def line(self, offset: int) -> int:
        """The number of the line that a character is in."""
        return self.text.count("\n", 0, offset) + 1

    def code(self, node: Any) -> str:
        """The node's text."""
        start, end = self.span(node)
        return self.text[start:end]

    def tight(self, node: Any) -> str:
        """The node's text, in brackets unless it needs none."""
        code = self.code(node)
        return code if isinstance(node, _ATOMS) else f"({code})"

    def between(self, one: Any, other: Any) -> str:
        """The text from the end of one node to the start of another."""
        return self.text[self.span(one)[1] : self.span(other)[0]]

    def exchanged(self, one: Any, other: Any) -> tuple[int, int, str]:
        """Where two nodes are, and their text in the other order."""
        new = self.code(other) + self.between(one, other) + self.code(one)
        return self.span(one)[0], self.span(other)[1], new

    def with_part(self, node: Any, part: Any, new: str) -> str:
        """The node's text with `new` in place of one part."""
        start, end = self.span(node)
        first, last = self.span(part)
        return self.text[start:first] + new + self.text[last:end]

    def changed(
        self, node: Any, new: str, rule: str, kind: str, at: Any = None
    ) -> Iterator[Change]:
        """`new` in place of a node; it points at that node, or `at` another."""
        yield Change(*self.span(node), new, rule, kind, self.span(at or node))
