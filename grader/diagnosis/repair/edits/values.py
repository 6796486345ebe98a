"""Changes of indices, constants, names and attributes."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from typing import Any

from grader.diagnosis.repair.edits.edit import Change
from grader.diagnosis.repair.edits.scope import Scope
from grader.diagnosis.repair.edits.source import Source
from grader.diagnosis.repair.edits.syntax import integer, is_axis, is_of_self, is_size

_INFINITY = re.compile(r"""(torch|math|np|numpy)\.inf|float\(["']inf["']\)""")
_MINUS_INFINITY = 'float("-inf")'
_RANK = re.compile(r"\.dim\(\)|\.ndim\b|\blen\(")


def _index(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x.shape[0]` as `x.shape[1]`, `x[y]` as `x`"""
    number = integer(node.slice)
    if not is_size(node):
        kind = "this part of the tensor, where all of it is needed"
        yield from source.changed(node, source.tight(node.value), "unwrap", kind)
    for axis in (-1, 1, 2, 0, -2, 3) if is_size(node) and number is not None else ():
        if axis != number:
            yield from source.changed(node.slice, str(axis), "size", "the axis of this size", node)


def _bounds(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x[a:b]` as `x[:b]`, as `x[a:b + 1]` and so on, `x[a:a + n]` as `x[a * n:(a + 1) * n]`"""
    is_alone = isinstance(node.slice, ast.Slice)
    elements = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for each in (one for one in elements if isinstance(one, ast.Slice)):
        lower, upper = each.lower, each.upper
        if isinstance(lower, ast.Name) and isinstance(upper, ast.BinOp):
            name, size = source.code(lower), source.tight(upper.right)
            if isinstance(upper.op, ast.Add) and source.code(upper.left) == name:
                new, kind = f"{name} * {size}:({name} + 1) * {size}", "the bounds of this slice"
                yield from source.changed(each, new, "window", kind, node)
        sides = (lower, upper, each.step) if is_alone else ()
        for side in filter(None, sides):
            for new in ("", f"{source.tight(side)} + 1", f"{source.tight(side)} - 1"):
                yield from source.changed(side, new, "bound", "this bound", node)


def _truth(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`True` as `False`, and `f(x=True)` and `f(x=None)` as `f(x=x)`"""
    if not isinstance(node.value, bool) and node.value is not None:
        return
    if node.value is not None:
        yield from source.changed(node, str(not node.value), "constant", f"this {node.value}")
    above = source.parents[node]
    if isinstance(above, ast.keyword) and above.arg in scope.params:
        kind = f"this {node.value}, where {above.arg} is expected"
        yield from source.changed(node, above.arg, "unused", kind)


def _number(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`8` as `9`, as `7` and as `d_k`; `0.1` as `0.0`, as `1.0` and so on; `-1e9` as -infinity"""
    if type(node.value) not in (int, float):
        return
    value, parent = node.value, source.parents[node]
    is_negative = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub)
    whole = parent if is_negative else node
    if is_axis(source.parents[whole]):
        return
    kind = "this number"
    is_filled = isinstance(value, float) or value == 0 or (is_negative and value >= 100)
    if is_filled and not isinstance(source.parents[whole], ast.Compare):
        yield from source.changed(whole, _MINUS_INFINITY, "infinity", kind)
    if isinstance(value, int):
        for other in (value + 1, value - 1):
            yield from source.changed(node, str(other), "number", kind)
        is_rank = isinstance(parent, ast.Compare) and _RANK.search(source.code(parent))
        if value > 1 and not is_negative and not is_rank:
            for name in (*sorted(scope.numbers), *scope.own_numbers):
                yield from source.changed(node, name, "fixed", "this fixed number")
        return
    for code in ("0.0", "1.0", "0.5"):
        if float(code) != value:
            yield from source.changed(node, code, "number", kind)
    if is_negative:
        yield from source.changed(whole, source.code(node), "number", kind)
    elif isinstance(parent, ast.BinOp) or value == 0.5:
        yield from source.changed(node, f"-{source.code(node)}", "number", kind)


def _name(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x` as `self.x`, or as `y`, another name of the function"""
    parent, own = source.parents[node], f"self.{node.id}"
    is_of_object = node.id in scope.methods or own in itertools.chain(*scope.attributes)
    if node.id not in scope.names and is_of_object:
        yield from source.changed(node, own, "unbound", "this name without self")
    if isinstance(parent, ast.Call) and parent.func is node:
        return
    if node.id not in scope.names or node.id == "self":
        return
    for other, line in scope.names.items():
        is_alike = (other in scope.numbers) == (node.id in scope.numbers)
        if other not in (node.id, "self") and line < node.lineno and is_alike:
            rule = "parameter" if {node.id, other} <= set(scope.params) else "name"
            yield from source.changed(node, other, rule, "this name")


def _attribute(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x.T` as `x.transpose(-2, -1)`, `x.data` as `x`, `self.x` as `self.y`, `x.y` as `y`"""
    code = source.tight(node.value)
    if node.attr in scope.params:
        yield from source.changed(node, node.attr, "attribute", "this attribute")
    if node.attr in ("T", "H"):
        kind = f"this .{node.attr}, which reverses all axes"
        for axes in ("-2, -1", "1, 2"):
            yield from source.changed(node, f"{code}.transpose({axes})", "transposed", kind)
    if node.attr in ("mT", "data", "T", "real", "indices"):
        kind = f"this .{node.attr}, which is not needed"
        dot, end = source.text.rindex(".", *source.span(node)), source.span(node)[1]
        yield Change(dot, end, "", "unwrap", kind, source.span(node))
    if node.attr == "indices":
        yield from source.changed(node, f"{code}.values", "values", "these indices")
    if is_of_self(node):
        name = f"self.{node.attr}"
        for other in itertools.chain(*(group for group in scope.attributes if name in group)):
            if other != name:
                yield from source.changed(node, other, "attribute", "this attribute")


def _infinity(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`torch.inf` as `-torch.inf`"""
    code = source.code(node)
    if _INFINITY.fullmatch(code) and not isinstance(source.parents[node], ast.UnaryOp):
        yield from source.changed(node, f"-{code}", "infinity", "the sign of this infinity")


RULES = (
    (ast.Subscript, _index),
    (ast.Subscript, _bounds),
    (ast.Constant, _truth),
    (ast.Constant, _number),
    (ast.Name, _name),
    (ast.Attribute, _attribute),
    ((ast.Attribute, ast.Call), _infinity),
)
