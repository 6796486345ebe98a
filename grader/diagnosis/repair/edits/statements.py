"""Changes of statements: left out, in another order, or with another value."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from typing import Any

from grader.diagnosis.repair.edits.edit import Change
from grader.diagnosis.repair.edits.operations import OPERATORS
from grader.diagnosis.repair.edits.scope import Scope
from grader.diagnosis.repair.edits.source import Source
from grader.diagnosis.repair.edits.syntax import (
    DEFINITION,
    FUNCTION,
    NO_TENSORS,
    called,
    is_module,
    is_of_self,
    is_setting,
    is_words,
)

_KEPT = (ast.Return, ast.Raise, ast.Pass, ast.Import, ast.ImportFrom, *DEFINITION)
_IN_ORDER = (ast.Assign, ast.AugAssign, ast.Expr)
_BLOCK = (*FUNCTION, ast.If, ast.For, ast.While, ast.With)


def left_out(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x = y` as `pass`"""
    for each in node.body:
        if isinstance(each, _KEPT) or is_words(each):
            continue
        is_block = "\n" in source.code(each)
        kind = f"this {'block' if is_block else 'statement'}, which is not needed"
        is_condition = isinstance(each, ast.If) and not each.orelse
        if is_condition and all(isinstance(inner, ast.Raise) for inner in each.body):
            kind = "this condition, which refuses what is allowed"
        at = getattr(each, "test", each) if is_block else each
        yield from source.changed(each, "pass", "statement", kind, at)


def _moved_out(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """The last statements of a block as those after it"""
    first, *others = node.body
    deeper = first.col_offset - node.col_offset
    if getattr(node, "orelse", ()) or first.lineno == node.lineno:
        return
    end = source.span(node)[1]
    for each in others:
        start = source.span(each)[0] - each.col_offset
        new = re.sub(rf"(?m)^[ \t]{{{deeper}}}", "", source.text[start:end])
        more = " and of those below it" if each is not node.body[-1] else ""
        kind = f"the indentation of this line{more}"
        yield Change(start, end, new, "indentation", kind, source.span(each))


def _order(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`a = f(x); b = g(a)` as `b = g(a); a = f(x)` and as `a = g(x); b = f(a)`"""
    for one, other in itertools.pairwise(node.body):
        if not isinstance(one, _IN_ORDER) or not isinstance(other, _IN_ORDER):
            continue
        if is_words(one) or is_words(other):
            continue
        changed = source.exchanged(one, other)
        kind = "the order of these two statements"
        yield Change(*changed, "order", kind, source.span(other))
        if isinstance(one, ast.Assign) and isinstance(other, ast.Assign):
            yield from _steps(one, other, source)


def _steps(one: ast.Assign, other: ast.Assign, source: Source) -> Iterator[Change]:
    name = one.targets[0]
    if not isinstance(name, ast.Name):
        return
    uses = [
        each for each in ast.walk(other.value) if isinstance(each, ast.Name) and each.id == name.id
    ]
    if len(uses) != 1:
        return
    for given in _about(one.value):
        new = source.with_part(other.value, uses[0], source.code(given))
        new += source.between(one.value, other.value)
        new += source.with_part(one.value, given, name.id)
        start, end = source.span(one.value)[0], source.span(other.value)[1]
        yield Change(start, end, new, "order", "the order of these two steps", source.span(other))


def _about(node: ast.expr) -> Iterator[ast.expr]:
    """What a call or an operation is about: its receiver or first operand."""
    if isinstance(node, ast.Call):
        if node.args and not isinstance(node.args[0], (ast.Constant, ast.Starred)):
            yield node.args[0]
        if isinstance(node.func, ast.Attribute) and not is_module(node.func.value):
            yield node.func.value
    elif isinstance(node, ast.BinOp):
        yield node.left


def _alike(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`k = self.w_k(key)` as `k = f(self.w_k(key))` beside `q = f(self.w_q(query))`"""
    steps = [each for each in node.body if isinstance(each, ast.Assign)]
    values = [
        value
        for step in steps
        for value in (step.value.elts if isinstance(step.value, ast.Tuple) else [step.value])
    ]
    layers = [(value, layer) for value in values if (layer := _layer(value)) is not None]
    for (one, (name, given)), (other, (own, own_given)) in itertools.permutations(layers[:6], 2):
        if name != own:
            new = re.sub(rf"\bself\.{name}\b", f"self.{own}", source.code(one))
            new = re.sub(rf"(?<![\w.]){given}\b", own_given, new)
            kind = f"this value, made differently from the one in line {one.lineno}"
            yield from source.changed(other, new, "alike", kind)


def _layer(value: ast.expr) -> tuple[str, str] | None:
    """The layer and its input, if there is just one `self.layer(x)` in a value."""
    found = [
        (each.func.attr, each.args[0].id)
        for each in ast.walk(value)
        if isinstance(each, ast.Call) and is_of_self(each.func)
        if len(each.args) == 1 and isinstance(each.args[0], ast.Name)
    ]
    return found[0] if len(found) == 1 else None


def _idle_layer(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x = y` as `x = self.layer(y)`, where nothing uses the layer"""
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    for value, idle in itertools.product(values, scope.idle):
        if value is not None and not isinstance(value, ast.Constant) and "self" in scope.params:
            kind = f"this value: {idle} is made and never used"
            yield from source.changed(value, f"{idle}({source.code(value)})", "unused", kind)


def _in_place(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x *= y` as `x = x * (y)` and as `x /= y`"""
    symbol, others = OPERATORS.get(type(node.op), ("", ()))
    if symbol:
        target = source.code(node.target).removesuffix(".data")
        new = f"{target} = {target} {symbol} ({source.code(node.value)})"
        kind = "this assignment, which changes a tensor in place"
        yield from source.changed(node, new, "in_place", kind)
        start, end = source.span(node.target)[1], source.span(node.value)[0]
        for other in others:
            new = source.text[start:end].replace(symbol, other, 1)
            yield Change(start, end, new, "operator", "this operator", source.span(node))


def _setting(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`torch.manual_seed(0)` as `pass`"""
    if is_setting(node):
        kind = f"this call of {called(node.value)}, which is not needed"
        yield from source.changed(node, "pass", "setting", kind)


def _result_kept(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x.add(y)` and `x.add_(y)` as `x = x.add(y)`, `ValueError(x)` as `raise ValueError(x)`"""
    call = node.value
    if not isinstance(call, ast.Call):
        return
    code, name = source.code(call), called(call)
    if name.endswith("Error"):
        kind = "this exception, which is not raised"
        yield from source.changed(node, f"raise {code}", "exception", kind)
        return
    if name.endswith("_") and isinstance(call.func, ast.Attribute):
        owner = source.code(call.func.value).removesuffix(".data")
        if re.fullmatch(r"(self\.)?\w+", owner) and owner not in NO_TENSORS:
            given = source.text[source.span(call.func)[1] : source.span(call)[1]]
            kind = f"{name}, which changes the tensor in place"
            new = f"{owner} = {owner}.{name[:-1]}{given}"
            yield from source.changed(node, new, "in_place", kind)
    owners = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    for each in (*owners, *call.args[:1]):
        root = each
        while isinstance(root, (ast.Attribute, ast.Call, ast.Subscript)):
            if isinstance(root, ast.Attribute) and isinstance(root.value, ast.Name):
                break
            root = root.func if isinstance(root, ast.Call) else root.value
        if isinstance(root, (ast.Name, ast.Attribute)) and not is_module(root):
            new, kind = (
                f"{source.code(root)} = {code}",
                "the result of this call, which is thrown away",
            )
            yield from source.changed(node, new, "kept", kind)


def _comma(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x = y,` as `x = y`"""
    if isinstance(node.value, ast.Tuple) and len(node.value.elts) == 1:
        new, kind = source.code(node.value.elts[0]), "this comma, which makes a tuple"
        yield from source.changed(node.value, new, "comma", kind)


def _unpacked(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x, y = z` as `y, x = z`"""
    target = node.targets[0]
    names = target.elts if isinstance(target, ast.Tuple) else []
    if len(names) > 4 or not all(isinstance(each, (ast.Name, ast.Attribute)) for each in names):
        return
    for one, other in itertools.combinations(names, 2):
        changed = source.exchanged(one, other)
        yield Change(*changed, "unpacked", "the order of these names", source.span(target))


def _elements(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`zip((x, y), z)` as `zip((y, x), z)`"""
    if isinstance(source.parents[node], (ast.Return, ast.Subscript)) or len(node.elts) > 4:
        return
    if all(isinstance(each, ast.Constant) for each in node.elts):
        return
    for one, other in itertools.combinations(node.elts, 2):
        changed = source.exchanged(one, other)
        yield Change(*changed, "unpacked", "the order of these values", source.span(node))


def _condition(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`if x` as `if not (x)`, and as `if True` unless it guards an error"""
    test, kind = source.code(node.test), "this condition, the other way round"
    new = test[4:] if test.startswith("not ") else f"not ({test})"
    yield from source.changed(node.test, new, "negation", kind)
    if isinstance(node, ast.If) and not isinstance(node.body[0], ast.Raise):
        kind = "this condition, which is not needed"
        yield from source.changed(node.test, "True", "one_side", kind)


RULES = (
    (_BLOCK, left_out),
    ((ast.If, ast.For, ast.While, ast.With), _moved_out),
    (_BLOCK, _order),
    (FUNCTION, _alike),
    ((ast.Assign, ast.Return), _idle_layer),
    (ast.AugAssign, _in_place),
    (ast.Expr, _setting),
    (ast.Expr, _result_kept),
    (ast.Assign, _comma),
    (ast.Assign, _unpacked),
    ((ast.Tuple, ast.List), _elements),
    ((ast.If, ast.While), _condition),
)
