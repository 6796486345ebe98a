"""Changes of functions and of what they raise."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grader.diagnosis.repair.edits.edit import Change
from grader.diagnosis.repair.edits.scope import Scope
from grader.diagnosis.repair.edits.source import Source
from grader.diagnosis.repair.edits.syntax import FUNCTION, is_words, own


def of_the_signature(
    root: Any, source: Source, signatures: Mapping[str, Sequence[str]]
) -> Iterator[list[Change]]:
    """Give the parameters the order and the names of the exercise, also where they are used."""
    inner = root.body if isinstance(root, ast.ClassDef) else [root]
    for node in (each for each in inner if isinstance(each, FUNCTION)):
        name = node.name if node is root else f"{root.name}.{node.name}"
        given = [each.arg for each in node.args.args]
        asked = signatures.get(name, given)
        if given != asked and sorted(given) == sorted(asked):
            yield from _reordered(node, source, asked)
        names = {
            argument: new
            for argument, new in zip(given, asked, strict=False)
            if argument not in asked and new not in given
        }
        if not names:
            continue
        old = "this parameter" if len(names) == 1 else "these parameters"
        kind = f"the name of {old}: the exercise says {', '.join(names.values())}"
        places = [
            *((each, each.arg) for each in node.args.args),
            *((each, each.id) for each in ast.walk(node) if isinstance(each, ast.Name)),
        ]
        changes = []
        for each, name in places:
            if name in names:
                start = source.span(each)[0]
                at = start, start + len(name)
                changes.append(Change(*at, names[name], "signature", kind, at))
        yield sorted(changes, key=lambda change: change.start)


def _reordered(node: Any, source: Source, asked: Sequence[str]) -> Iterator[list[Change]]:
    """`def f(x, y=1, z=2)` as `def f(x, z=2, y=1)`"""
    args = node.args.args
    bare = args[: len(args) - len(node.args.defaults)]
    if {arg.arg for arg in bare} != {*asked[: len(bare)]}:
        return  # only the last ones may have a default
    spans = {
        arg.arg: (source.span(arg)[0], source.span(end)[1])
        for arg, end in zip(args, (*bare, *node.args.defaults), strict=True)
    }
    moved = [(arg.arg, new) for arg, new in zip(args, asked, strict=True) if arg.arg != new]
    kind = f"the order of these parameters: the exercise says {', '.join(new for _, new in moved)}"
    whole = spans[moved[0][0]][0], spans[moved[-1][0]][1]
    yield [
        Change(*spans[old], source.text[slice(*spans[new])], "signature", kind, whole)
        for old, new in moved
    ]


def _default(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`def f(x, y)` as `def f(x, y=None)`"""
    bare = node.args.args[: len(node.args.args) - len(node.args.defaults)]
    if bare and bare[-1].arg != "self" and not node.args.vararg:
        new, kind = f"{source.code(bare[-1])}=None", "this parameter, which has no default"
        yield from source.changed(bare[-1], new, "default", kind)


def _other_default(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`x=True` as `x=False`, `x=0.1` as `x=0.0`"""
    for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
        value = default.value if isinstance(default, ast.Constant) else None
        if isinstance(value, (bool, float)):
            new = str(not value) if isinstance(value, bool) else "0.0"
            yield from source.changed(default, new, "constant", "the default of this parameter")


def _decorator(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`@f def g` as `def g`"""
    for decorator in node.decorator_list:
        start, end = source.span(decorator)
        start = source.text.rindex("@", 0, start)
        start = source.text.rfind("\n", 0, start) + 1
        end = source.text.find("\n", end) + 1 or end
        yield Change(start, end, "", "decorator", "this decorator", source.span(decorator))


def _self(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """In a class, `def f(x)` as `def f(self, x)`, and of a static method the other way round"""
    if not isinstance(source.parents[node], ast.ClassDef):
        return
    names = [each.arg for each in node.args.args]
    bound = [each for each in node.decorator_list if source.code(each) != "property"]
    start = source.text.index("(", source.span(node)[0]) + 1
    at = start - 1 - len(node.name), start - 1
    if not bound and names[:1] != ["self"]:
        kind, new = "this method, which does not take self", "self, " if names else "self"
        yield Change(start, start, new, "signature", kind, at)
    elif bound and source.code(bound[0]) == "staticmethod" and names[:1] == ["self"]:
        end = source.span(node.args.args[1])[0] if names[1:] else start + len("self")
        kind = "this static method, which gets no self"
        yield Change(start, end, "", "signature", kind, at)


def _return(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """At the end, `print(x)` and `x` as `return x`, `x = y` as `x = y; return x`

    After an `if` without `else`, in a function that returns something, `return` of the first
    parameter.
    """
    last = node.body[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        call = last.value
        if isinstance(call.func, ast.Name) and call.func.id == "print" and call.args:
            new, kind = f"return {source.code(call.args[-1])}", "this print, which returns nothing"
            yield from source.changed(last, new, "return", kind)
    returns = any(isinstance(each, ast.Return) and each.value for each in own(node))
    kind = "the end of this function, which returns nothing"
    start, end = source.span(last)
    names = [each.arg for each in node.args.args if each.arg != "self"]
    if returns and isinstance(last, ast.If) and not last.orelse and names:
        new = f"\n{' ' * last.col_offset}return {names[0]}"
        after = "this if, after which nothing is returned"
        yield Change(end, end, new, "return", after, (start, end))
    if returns or node.name == "__init__":
        return
    if isinstance(last, ast.Expr) and not is_words(last):
        yield Change(start, start, "return ", "return", kind, (start, end))
    if isinstance(last, ast.Assign) and isinstance(last.targets[0], (ast.Name, ast.Tuple)):
        new = f"\n{' ' * last.col_offset}return {source.code(last.targets[0])}"
        yield Change(end, end, new, "return", kind, (start, end))


def _exception(node: Any, source: Source, scope: Scope) -> Iterator[Change]:
    """`raise x` as `raise ValueError`, `raise "x"` as `raise ValueError("x")`"""
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    if isinstance(raised, ast.Name):
        for new in ("ValueError", "TypeError"):
            yield from source.changed(raised, new, "exception", "the kind of this exception")
    elif isinstance(raised, (ast.Constant, ast.JoinedStr)):
        new, kind = (
            f"ValueError({source.code(raised)})",
            "this text, where an exception is expected",
        )
        yield from source.changed(raised, new, "exception", kind)


RULES = (
    (FUNCTION, _default),
    (FUNCTION, _other_default),
    (FUNCTION, _decorator),
    (FUNCTION, _self),
    (FUNCTION, _return),
    (ast.Raise, _exception),
)
