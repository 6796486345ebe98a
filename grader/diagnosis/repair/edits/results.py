"""Changes of what a function returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from grader.diagnosis.repair.edits.edit import Change
from grader.diagnosis.repair.edits.scope import Scope
from grader.diagnosis.repair.edits.source import Source
from grader.diagnosis.repair.edits.syntax import called


def _raised(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`return ValueError(x)` as `raise ValueError(x)`, `return None` as `raise ValueError`"""
    value = node.value
    if isinstance(value, ast.Call) and called(value).endswith("Error"):
        new, kind = f"raise {source.code(value)}", "this exception, which is returned"
        yield from source.changed(node, new, "exception", kind)
    if isinstance(value, ast.Constant) and value.value in (None, False):
        kind = "this return, where an exception is expected"
        yield from source.changed(node, "raise ValueError", "exception", kind)


def _several(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`return [x, y]` as `return (x, y)`, `return x, y` as `return y, x` and as `return x`"""
    value = node.value
    if isinstance(value, ast.ListComp):
        kind = "this list, where one tensor is expected"
        for axis in (1, -1, 0):
            new = f"__import__('torch').stack({source.code(value)}, dim={axis})"
            yield from source.changed(value, new, "returned", kind)
    elif isinstance(value, (ast.List, ast.Dict)):
        elements = value.elts if isinstance(value, ast.List) else value.values
        if len(elements) > 1:
            new = f"({', '.join(map(source.code, elements))})"
            name = "list" if isinstance(value, ast.List) else "dict"
            kind = f"this {name}, where a tuple is expected"
            yield from source.changed(value, new, "returned", kind)
    elif isinstance(value, ast.Tuple):
        results = [source.code(each) for each in value.elts]
        if len(results) == 1:
            kind = "this comma, which makes a tuple"
            yield from source.changed(value, results[0], "comma", kind)
        elif len(results) == 2:
            new, kind = ", ".join(results[::-1]), "the order of these results"
            yield from source.changed(value, new, "returned", kind)
            yield from source.changed(value, results[0], "returned", "what is returned")


def _step(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`return x` as `return x.transpose(1, 2)`, `return ~x` and the like"""
    params = [name for name in scope.params if name != "self"][:2]
    turned = "this result, whose axes are in another order"
    for each in node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]:
        if each is None or isinstance(each, (ast.Constant, ast.Dict, ast.List)):
            continue
        tight = source.tight(each)
        steps = [
            *(
                (f"{tight}.to({name}.dtype)", "cast", "the dtype of this result")
                for name in params
                if not (isinstance(each, ast.Name) and each.id == name)
            ),
            (f"{tight}.transpose(1, 2)", "turned", turned),
            (f"{tight}.transpose(-2, -1)", "turned", turned),
            (f"~{tight}", "negation", "this result, the other way round"),
            (f"{tight}.bool()", "cast", "the dtype of this result"),
        ]
        for new, rule, kind in steps:
            yield from source.changed(each, new, rule, kind)


RULES = ((ast.Return, _raised), (ast.Return, _several), (ast.Return, _step))
