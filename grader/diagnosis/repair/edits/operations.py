"""Changes of operators, and of what they are given."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from grader.diagnosis.repair.edits.edit import Change
from grader.diagnosis.repair.edits.scope import Scope
from grader.diagnosis.repair.edits.source import Source
from grader.diagnosis.repair.edits.syntax import NO_TENSORS, SHAPING, called, is_method

OPERATORS: Mapping[type[ast.AST], tuple[str, tuple[str, ...]]] = {
    ast.Mult: ("*", ("/", "@")),
    ast.Div: ("/", ("*", "//")),
    ast.FloorDiv: ("//", ("/", "%")),
    ast.Mod: ("%", ("//",)),
    ast.MatMult: ("@", ()),
    ast.Pow: ("**", ("*",)),
    ast.Add: ("+", ("-", "*")),
    ast.Sub: ("-", ("+",)),
    ast.BitAnd: ("&", ("|",)),
    ast.BitOr: ("|", ("&",)),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Lt: ("<", ("<=", ">", ">=")),
    ast.LtE: ("<=", ("<", ">=", ">")),
    ast.Gt: (">", (">=", "<", "<=")),
    ast.GtE: (">=", (">", "<=", "<")),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.And: ("and", ("or",)),
    ast.Or: ("or", ("and",)),
}
_ONE_WAY = (ast.Div, ast.Sub, ast.MatMult, ast.FloorDiv, ast.Mod)
_LAYING = SHAPING | {"flatten", "contiguous"}  # what depends on the order of axes in memory
_PRODUCTS = frozenset({"matmul", "bmm"})
_TURNS = frozenset({"transpose", "mT", "T", "permute", "swapaxes"})
_FILLED = frozenset({"masked_fill", "masked_fill_", "where", "matmul"})


def _operator(
    left: ast.expr, right: ast.expr, op: ast.AST, node: ast.expr, source: Source
) -> Iterator[Change]:
    """Another operator between two neighbours of a node."""
    old, others = OPERATORS.get(type(op), ("", ()))
    start, between = source.span(left)[1], source.between(left, right)
    if not old or "#" in between or between.count(old) != 1:
        return
    start += between.index(old)
    word = "comparison" if isinstance(op, ast.cmpop) else "operator"
    for other in others:
        yield Change(start, start + len(old), other, word, f"this {word}", source.span(node))


def _operation(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x * y` as `x / y`, as `x` and as `y`; `x / y` as `y / x`"""
    yield from _operator(node.left, node.right, node.op, node, source)
    kind = "this operation, which is not needed"
    start, end = source.span(node)
    left, between = source.span(node.left)[1], source.between(node.left, node.right)
    sign = between.strip("() \t\n\\")
    after = left + between.index(sign)
    for kept, at in ((node.left, (after, end)), (node.right, (start, after + len(sign)))):
        if not isinstance(kept, ast.Constant):
            yield Change(start, end, source.tight(kept), "one_side", kind, at)
    if isinstance(node.op, _ONE_WAY) and not set(between) & set("()#"):
        new = source.tight(node.right) + between + source.tight(node.left)
        rule = "order" if isinstance(node.op, ast.Mod) else "operands"
        yield from source.changed(node, new, rule, "the order of these operands")


def _grouping(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x ** y / z` as `x ** (y / z)`, `f(x) - y` as `f(x - y)`"""
    inner = node.left
    while isinstance(inner, ast.BinOp) and isinstance(inner.op, (ast.Mult, ast.Div)):
        inner = inner.right
    rest = source.text[source.span(inner)[1] : source.span(node)[1]]
    if rest.startswith(")"):
        return
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Pow):
        start, end = source.span(inner.right)[0], source.span(node)[1]
        kind = "this power, which is computed before what follows it"
        new = f"({source.text[start:end]})"
        yield Change(start, end, new, "power", kind, source.span(inner))
    if isinstance(node.left, ast.Call) and len(node.left.args) == 1:
        [given] = node.left.args
        if not isinstance(given, ast.Constant):
            kind = "this call, which ends before the operator"
            new = source.with_part(node.left, given, source.code(given) + rest)
            yield from source.changed(node, new, "order", kind, node.left)


def _stretched(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x < y` and `x * y` as `x[..., None] < y` and as `x < y[..., None]`"""
    for each in (node.left, *(getattr(node, "comparators", None) or [node.right])):
        if isinstance(each, ast.Name):
            kind = "this operand, which lacks an axis"
            yield from source.changed(each, f"{each.id}[..., None]", "turned", kind)


def _comparison(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x < y` as `x <= y`"""
    operands = itertools.pairwise([node.left, *node.comparators])
    for op, (left, right) in zip(node.ops, operands, strict=True):
        yield from _operator(left, right, op, node, source)


def _boolean(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x and y` as `x or y`, as `x`, as `y` and as `not x and y`"""
    for left, right in itertools.pairwise(node.values):
        yield from _operator(left, right, node.op, node, source)
    for each in node.values:
        code = source.tight(each)
        if len(node.values) == 2:
            kind = "this condition, half of which is not needed"
            yield from source.changed(node, code, "one_side", kind)
        kind = "this condition, the other way round"
        yield from source.changed(each, f"(not {code})", "negation", kind)


def _sign(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`-x` as `x`, `~x` as `x` and as `x == 0`"""
    new = source.tight(node.operand)
    kind = "this minus" if isinstance(node.op, ast.USub) else "this negation"
    if not isinstance(node.operand, ast.Constant):
        yield from source.changed(node, new, "negation", kind)
    if isinstance(node.op, ast.Invert):
        yield from source.changed(node, f"({new} == 0)", "negation", kind)


def _sides(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x if z else y` as `y if z else x`, as `x` and as `y`"""
    one, other = source.tight(node.body), source.tight(node.orelse)
    kind = "the two sides of this condition"
    new = f"{other} if {source.code(node.test)} else {one}"
    yield from source.changed(node, new, "negation", kind)
    yield from source.changed(node, one, "one_side", kind)
    yield from source.changed(node, other, "one_side", kind)


def _operand(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x @ y` as `x @ y.transpose(-2, -1)`, `x.view(a)` as `x.contiguous().view(a)` and the like"""
    if isinstance(node, ast.Name) and node.id in NO_TENSORS:
        return
    parent, code = source.parents[node], source.code(node)
    is_argument = isinstance(parent, ast.Call) and node in parent.args
    filled = called(parent) if is_argument and called(parent) in _FILLED else ""
    is_product = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.MatMult)
    if is_product or filled == "matmul":
        kind = "this operand, which is not transposed"
        for axes in ("-2, -1", "1, 2"):
            yield from source.changed(node, f"{code}.transpose({axes})", "turned", kind)
    if filled:
        kind = "this mask, the other way round"
        for new in (f"~{code}", f"({code} == 0)"):
            yield from source.changed(node, new, "negation", kind)
    is_method = isinstance(parent, ast.Attribute) and isinstance(source.parents[parent], ast.Call)
    if is_method and parent.attr in _LAYING:
        kind = f"this tensor, whose axes are in another order before {parent.attr}"
        for axes in ("1, 2", "-2, -1", "0, 1"):
            yield from source.changed(node, f"{code}.transpose({axes})", "turned", kind)
        kind = "this tensor, which is not contiguous"
        yield from source.changed(node, f"{code}.contiguous()", "contiguous", kind)


def _other_operand(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x.mT @ y` as `x @ y.mT`, and `matmul(x.mT, y)` as `matmul(x, y.mT)`"""
    product: list[Any] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        product = [node.left, node.right]
    elif isinstance(node, ast.Call) and called(node) in _PRODUCTS:
        of: Any = node.func
        product = [of.value, *node.args] if is_method(node) else node.args
    if len(product) != 2:
        return
    for one, other in (product, product[::-1]):
        turned = one.func if isinstance(one, ast.Call) else one
        if isinstance(turned, ast.Attribute) and turned.attr in _TURNS:
            bare = turned.value
            step = source.text[source.span(bare)[1] : source.span(one)[1]]
            new = {one: source.code(bare), other: source.tight(other) + step}
            start, end = source.span(product[0])[0], source.span(product[1])[1]
            code = source.between(*product).join(new[each] for each in product)
            kind = f"this {turned.attr}, which belongs to the other operand"
            yield Change(start, end, code, "order", kind, source.span(one))


RULES = (
    (ast.BinOp, _operation),
    (ast.BinOp, _grouping),
    ((ast.BinOp, ast.Compare), _stretched),
    ((ast.BinOp, ast.Call), _other_operand),
    (ast.Compare, _comparison),
    (ast.BoolOp, _boolean),
    (ast.UnaryOp, _sign),
    (ast.IfExp, _sides),
    ((ast.Name, ast.Call, ast.Attribute, ast.Subscript), _operand),
)
