"""What is known around a node: a function's parameters and names, a class's attributes."""

from __future__ import annotations

import ast
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from grader.diagnosis.repair.edits.syntax import called, is_of_self, is_size


@dataclass(frozen=True)
class Scope:
    """A function's parameters and names, and the attributes of its class."""

    params: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    names: Mapping[str, int] = field(default_factory=dict)  # with the first line of each
    numbers: frozenset[str] = frozenset()  # the names that hold sizes or other numbers
    attributes: tuple[tuple[str, ...], ...] = ()  # groups of self's, first what may be numbers
    idle: tuple[str, ...] = ()  # the attributes that a call makes and no method uses
    methods: tuple[str, ...] = ()  # of the class

    @property
    def own_numbers(self) -> tuple[str, ...]:
        """The attributes of self that may be numbers."""
        return self.attributes[0] if self.attributes else ()


def of_function(node: Any, around: Scope) -> Scope:
    """The scope within a function."""
    every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    params = tuple(each.arg for each in every)
    loaded = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    names = dict.fromkeys(params, 0)
    numbers: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            names[each.id] = min(each.lineno, names.get(each.id, each.lineno))
        elif isinstance(each, ast.Assign) and _is_number(each.value, numbers):
            for target in each.targets:
                numbers |= {t.id for t in ast.walk(target) if isinstance(t, ast.Name)}
        elif isinstance(each, ast.BinOp) and isinstance(each.op, (ast.FloorDiv, ast.Mod)):
            numbers |= {t.id for t in (each.left, each.right) if isinstance(t, ast.Name)}
    unused = tuple(each for each in params if each not in loaded and each != "self")
    return replace(around, params=params, unused=unused, names=names, numbers=frozenset(numbers))


def of_class(node: ast.ClassDef) -> Scope:
    """The scope within a class."""
    attributes = _attributes(node)
    methods = tuple(each.name for each in node.body if isinstance(each, ast.FunctionDef))
    return Scope(attributes=attributes, idle=_idle(node, attributes), methods=methods)


def _is_number(value: ast.expr, numbers: set[str]) -> bool:
    """Whether it is a number, a tuple of numbers, or computed from numbers."""
    if isinstance(value, ast.Call):
        return called(value) in ("size", "len", "int", "sqrt", "dim")
    if isinstance(value, ast.Attribute):
        return value.attr == "shape"
    if isinstance(value, ast.Subscript):
        return is_size(value)
    if isinstance(value, ast.Tuple):
        return all(_is_number(each, numbers) for each in value.elts)
    if isinstance(value, ast.BinOp):
        return _is_number(value.left, numbers) and _is_number(value.right, numbers)
    if isinstance(value, ast.Name):
        return value.id in numbers
    return isinstance(value, ast.Constant)


def _attributes(node: ast.ClassDef) -> tuple[tuple[str, ...], ...]:
    """The attributes of self in groups: what may hold numbers, then what the same call makes."""
    groups: dict[str, dict[str, None]] = defaultdict(dict, {"": {}})
    for each in ast.walk(node):
        if not isinstance(each, ast.Assign):
            continue
        is_made = isinstance(each.value, ast.Call) and not _is_number(each.value, set())
        made = ast.unparse(each.value.func) if is_made else ""  # type: ignore[attr-defined]
        for target in each.targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            for part in filter(is_of_self, parts):
                groups[made][f"self.{part.attr}"] = None
    return tuple(tuple(group) for group in groups.values())


def _idle(node: ast.ClassDef, attributes: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """The attributes that the constructor makes by a call and no other method mentions."""
    others = [each for each in node.body if getattr(each, "name", "") != "__init__"]
    used = {
        f"self.{each.attr}"
        for other in others
        for each in ast.walk(other)
        if isinstance(each, ast.Attribute)
    }
    made = {
        ast.unparse(target)
        for each in ast.walk(node)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call)
        for target in each.targets
    }
    every = itertools.chain.from_iterable(attributes)
    return tuple(name for name in every if name in made and name not in used)
