"""Changes of calls: other functions, other axes, other arguments."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from grader.diagnosis.repair.edits.edit import Change
from grader.diagnosis.repair.edits.scope import Scope
from grader.diagnosis.repair.edits.source import Source
from grader.diagnosis.repair.edits.syntax import (
    OVER_AXIS,
    SHAPING,
    TWO_AXES,
    called,
    integer,
    is_method,
    is_module,
)

_KEEPS_AXIS = frozenset(
    {"sum", "mean", "std", "var", "norm", "max", "min", "amax", "amin", "any", "all", "logsumexp"}
)
_NEEDS_AXIS = _KEEPS_AXIS | {"softmax", "log_softmax", "Softmax"}
_JOINS = frozenset({"cat", "concat", "concatenate", "stack"})
_WITH_PLACES = frozenset({"max", "min", "sort", "topk", "median"})  # (values, indices) for a dim
_AFTER_A_NUMBER = frozenset({"chunk", "split", "topk", "repeat_interleave", "roll"})
_TWINS = (
    *(("tril", "triu"), ("max", "amax"), ("min", "amin"), ("max", "min"), ("amax", "amin")),
    *(("any", "all"), ("sum", "mean"), ("ones", "zeros"), ("ones_like", "zeros_like")),
    *(("view", "reshape"), ("repeat", "repeat_interleave"), ("cat", "stack"), ("sin", "cos")),
    *(("softmax", "log_softmax"), ("no_grad", "enable_grad"), ("repeat", "expand")),
    *(("floor", "ceil"), ("long", "bool"), ("int", "bool"), ("ones_", "zeros_")),
    *(("ModuleList", "Sequential"), ("LongTensor", "BoolTensor"), ("empty", "zeros")),
    *(("xavier_uniform_", "xavier_normal_"), ("kaiming_uniform_", "xavier_uniform_")),
    *(("kaiming_normal_", "xavier_normal_"), ("bmm", "matmul"), ("mm", "matmul")),
    *(("exp2", "exp"), ("expm1", "exp"), ("bfloat16", "float"), ("half", "float")),
    *(("mul", "div"), ("add", "sub"), ("lt", "le"), ("gt", "ge"), ("eq", "ne")),
    *(("argmax", "argmin"), ("max", "argmax"), ("min", "argmin"), ("maximum", "minimum")),
    *(("mean", "median"), ("std", "var"), ("abs", "square"), ("argsort", "sort")),
    *(("isalpha", "isalnum"), ("lower", "upper"), ("append", "extend"), ("items", "keys")),
    *(("startswith", "endswith"), ("lstrip", "rstrip"), ("ljust", "rjust")),
)


def _elements(args: Sequence[ast.expr]) -> Sequence[ast.expr]:
    """The arguments, also where they are one tuple or list."""
    one = args[0] if len(args) == 1 else None
    return one.elts if isinstance(one, (ast.Tuple, ast.List)) else args


def _last_name(node: ast.Call, source: Source) -> tuple[int, int]:
    """Where the last name of what is called stands."""
    end = source.span(node.func)[1]
    return end - len(called(node)), end


def _more(node: ast.Call, source: Source, argument: str, rule: str, kind: str) -> Iterator[Change]:
    """One more argument of a call."""
    start, end = source.span(node)
    comma = ", " if node.args or node.keywords else ""
    if source.text[start : end - 1].rstrip().endswith(","):
        comma = " "
    yield Change(end - 1, end - 1, comma + argument, rule, kind, (start, end))


# --- axes -------------------------------------------------------------------------------------


def _other_axes(axis: ast.expr, node: ast.Call, source: Source) -> Iterator[Change]:
    value = integer(axis)
    for other in (-1, 1, 2, -2, 0, 3):
        if value not in (None, other):
            kind = f"the axis of this {called(node)}"
            yield from source.changed(axis, str(other), "axis", kind, node)


def _axis(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x.sum(0)` as `x.sum(-1)`"""
    name = called(node)
    for keyword in node.keywords:
        if keyword.arg in ("dim", "axis", "start_dim", "dim0", "dim1"):
            yield from _other_axes(keyword.value, node, source)
    if name in OVER_AXIS:
        for each in node.args[(not is_method(node)) + (name in _AFTER_A_NUMBER) :]:
            yield from _other_axes(each, node, source)


def _axes(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x.transpose(0, 1)` as `x.transpose(1, 2)`, two axes of `x.permute(...)`"""
    name, axes = called(node), node.args if is_method(node) else node.args[1:]
    if name == "permute":
        axes = _elements(axes)
    values = [integer(each) for each in axes]
    if None in values:
        return
    orders: list[tuple[int | None, ...]] = []
    if name in TWO_AXES and len(values) == 2:
        pairs = [(1, 2), (2, 3), (1, 3), (0, 1), (0, 2), (-2, -1)]
        orders = [pair for pair in pairs if {*pair} != {*values}]
    elif name == "permute" and 3 <= len(values) <= 5:
        for one, other in itertools.combinations(range(len(values)), 2):
            moved = [*values]
            moved[one], moved[other] = moved[other], moved[one]
            orders.append(tuple(moved))
    for order in orders:
        start, end = source.span(axes[0])[0], source.span(axes[-1])[1]
        new, kind = ", ".join(map(str, order)), f"the axes of this {name}"
        yield Change(start, end, new, "axes", kind, source.span(node))


def _has_axis(node: ast.Call) -> bool:
    given = {keyword.arg for keyword in node.keywords}
    return bool(given & {"dim", "axis"}) or len(node.args) > (0 if is_method(node) else 1)


def _keepdim(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x.sum(-1)` as `x.sum(-1, keepdim=True)`"""
    name = called(node)
    given = [each for each in node.keywords if each.arg in ("keepdim", "keepdims")]
    if name in _KEEPS_AXIS and not given and _has_axis(node):
        kind = f"this {name}, which drops the axis"
        yield from _more(node, source, "keepdim=True", "keepdim", kind)
    for keyword in given:
        yield from source.changed(keyword.value, "False", "keepdim", f"this {name}")


def _no_axis(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x.sum()` as `x.sum(dim=-1)`, `cat([x, y])` as `cat([x, y], dim=1)`"""
    name = called(node)
    if name in _NEEDS_AXIS | _JOINS and not _has_axis(node):
        joins = ("dim=1", "dim=2", "dim=-1")
        for more in joins if name in _JOINS else ("dim=-1", "dim=-1, keepdim=True"):
            yield from _more(node, source, more, "axis", f"this {name}, which names no axis")


def _values(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x.max(-1)` as `x.max(-1).values`"""
    name = called(node)
    is_taken = isinstance(source.parents[node], (ast.Attribute, ast.Subscript))
    if is_method(node) and name in _WITH_PLACES and _has_axis(node) and not is_taken:
        kind = f"this {name}, which gives values and indices"
        yield from source.changed(node, f"{source.code(node)}.values", "values", kind)


def _diagonal(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x.tril()` as `x.tril(diagonal=1)`"""
    bare = len(node.args) == (0 if is_method(node) else 1) and not node.keywords
    if called(node) in ("tril", "triu") and bare:
        for diagonal in (1, -1):
            kind = "the diagonal of this triangle"
            yield from _more(node, source, f"diagonal={diagonal}", "diagonal", kind)


# --- other calls ------------------------------------------------------------------------------


def _unwrapped(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`f(x)` as `x`, `x.f()` as `x`"""
    if isinstance(source.parents[node], ast.Expr):
        return
    kind = f"this call of {called(node)}, which is not needed"
    dot, end = _last_name(node, source)[0] - 1, source.span(node)[1]
    if is_method(node) and source.text[dot] == ".":  # of a chain, only this call is pointed at
        yield Change(dot, end, "", "unwrap", kind, (dot, end))
    if node.args and not isinstance(node.args[0], (ast.Constant, ast.Starred)):
        yield from source.changed(node, source.tight(node.args[0]), "unwrap", kind)


def _order(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`f(g(x))` as `g(f(x))`, `x.f().g()` as `x.g().f()`"""
    if isinstance(source.parents[node], ast.Expr):
        return
    kind = "the order of these two calls"
    inner = node.args[0] if node.args else None
    if isinstance(inner, ast.Call) and inner.args:
        given = source.with_part(node, inner, source.code(inner.args[0]))
        new = source.with_part(inner, inner.args[0], given)
        yield from source.changed(node, new, "order", kind)
    below: Any = node.func.value if isinstance(node.func, ast.Attribute) else None
    is_chain = isinstance(below, ast.Call) and isinstance(below.func, ast.Attribute)
    if is_chain and not is_module(below.func.value):
        start, middle = source.span(below.func.value)[1], source.span(below)[1]
        end = source.span(node)[1]
        new = source.text[middle:end] + source.text[start:middle]
        yield Change(start, end, new, "order", kind, source.span(node))


def _twin(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x.tril()` as `x.triu()`, `x.add_(y)` as `x.add(y)`"""
    name, place = called(node), _last_name(node, source)
    for one, other in _TWINS:
        twin = other if name == one else one if name == other else ""
        if twin:
            yield Change(*place, twin, "twin", f"this {name}", source.span(node))
    if is_method(node) and name.endswith("_") and not name.startswith("_"):
        kind = f"{name}, which changes the tensor in place"
        yield Change(*place, name[:-1], "in_place", kind, source.span(node))


def _repeat(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x.repeat(1, n)` as `x.repeat_interleave(n, dim=-1)`"""
    name = called(node)
    if name not in ("repeat", "tile") or not is_method(node):
        return
    args = _elements(node.args)
    several = [place for place, each in enumerate(args) if integer(each) != 1]
    if len(several) == 1 and len(args) > 1:
        [place] = several
        new = f"repeat_interleave({source.code(args[place])}, dim={place - len(args)})"
        start, end = _last_name(node, source)[0], source.span(node)[1]
        kind = f"this {name}, which repeats in turns"
        yield Change(start, end, new, "twin", kind, source.span(node))


# --- arguments --------------------------------------------------------------------------------


def _range(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`range(1, n + 1)` as `range(n)`, `arange(a, n)` as `arange(a, a + n)`"""
    name = called(node)
    if name not in ("range", "arange") or len(node.args) != 2:
        return
    first, last = node.args
    start, end = source.span(first)[0], source.span(last)[1]
    if integer(first) == 1 and isinstance(last, ast.BinOp) and isinstance(last.op, ast.Add):
        kind = f"the bounds of this {name}"
        yield Change(start, end, source.code(last.left), "bound", kind, source.span(node))
    if isinstance(first, (ast.Name, ast.Attribute)):
        new, kind = f"{source.code(first)} + {source.tight(last)}", f"the end of this {name}"
        yield from source.changed(last, new, "bound", kind, node)


def _neighbours(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`f(x, y)` as `f(y, x)`; `x.view(a, b, c)` as `x.view(b, a, c).transpose(0, 1)` too"""
    name = called(node)
    shapes = name in SHAPING
    before = {called(each) for each in ast.walk(node.func) if isinstance(each, ast.Call)}
    exchanges = bool(before & {"permute", *TWO_AXES})
    args = _elements(node.args) if shapes else node.args
    if name in TWO_AXES:
        return
    kind = f"the order of the sizes in this {name}" if shapes else "the order of these arguments"
    for index, pair in enumerate(itertools.pairwise(args)):
        if any(isinstance(each, ast.Starred) for each in pair):
            continue
        start, end, new = source.exchanged(*pair)
        yield Change(start, end, new, "arguments", kind, (start, end))
        if shapes and len(args) > 2 and not exchanges:
            first, last = _last_name(node, source)[0], source.span(node)[1]
            turned = source.text[first:start] + new + source.text[end:last]
            turned += f".transpose({index}, {index + 1})"
            why = f"this {name}, which does not exchange axes"
            yield Change(first, last, turned, "shaped", why, source.span(node))


def _turned(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x.view(a, b, c)` as `x.view(a, b, c).transpose(1, 2)`"""
    name = called(node)
    if name in SHAPING and len(_elements(node.args)) > 2:
        kind = f"this {name}, after which the axes are in another order"
        for axes in ("1, 2", "2, 3"):
            new = f"{source.code(node)}.transpose({axes})"
            yield from source.changed(node, new, "turned", kind)


def _argument(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`f(x, y)` as `f(x)`"""
    kind = "this argument, which is not needed"
    args = node.args
    if len(args) > 1 and called(node) not in {"permute", *TWO_AXES, *SHAPING}:
        start, end = source.span(args[-2])[1], source.span(args[-1])[1]
        yield Change(start, end, "", "argument", kind, source.span(args[-1]))
    for keyword in node.keywords:
        if keyword.arg not in (None, "dim", "axis", "keepdim"):
            start, end = source.span(keyword)
            before = source.text[:start].rstrip()
            if before.endswith(","):
                at = start, end
                yield Change(len(before) - 1, end, "", "argument", kind, at)


def _unused(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`f(x)` as `f(x, mask=mask)`, where nothing uses mask"""
    given = {keyword.arg for keyword in node.keywords}
    for name in () if is_method(node) else scope.unused:
        if name not in given:
            kind = f"this call, which does not get {name}"
            yield from _more(node, source, f"{name}={name}", "unused", kind)


RULES = tuple(
    (ast.Call, rule)
    for rule in (
        *(_axis, _axes, _keepdim, _no_axis, _values, _diagonal),
        *(_unwrapped, _order, _twin, _repeat),
        *(_range, _neighbours, _turned, _argument, _unused),
    )
)
