"""Source -> its small edits: each undoes one mistake, and nothing runs.

A worker reads the source, because a stranger wrote it: this module's own text is sent there. So it
imports nothing but the standard library.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

MOST = 2000  # edits of one submission
LONGEST = 50_000  # characters of a source that is read
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITION = (*_FUNCTION, ast.ClassDef)
_READ = (ast.expr, ast.stmt, ast.keyword, ast.withitem, ast.comprehension)
_ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Dict)
_OVER_AXIS = frozenset(
    {
        *("softmax", "log_softmax", "logsumexp", "sum", "mean", "std", "var", "prod", "norm"),
        *("max", "min", "amax", "amin", "argmax", "argmin", "any", "all", "cumsum", "sort"),
        *("normalize", "unsqueeze", "squeeze", "select", "size", "unbind", "flip", "roll"),
        *("cat", "stack", "concat", "chunk", "split", "topk", "gather", "index_select"),
        *("repeat_interleave", "unflatten", "concatenate", "expand_dims"),
    }
)
_TWO_AXES = frozenset({"transpose", "swapaxes", "swapdims", "movedim", "flatten"})
_KEEPS_AXIS = frozenset(
    {"sum", "mean", "std", "var", "norm", "max", "min", "amax", "amin", "any", "all", "logsumexp"}
)
_SHAPING = frozenset({"view", "reshape"})
_LAYING = _SHAPING | {"flatten", "contiguous"}  # what depends on the order of axes in memory
_WITH_PLACES = frozenset({"max", "min", "sort", "topk", "median"})  # (values, indices) for a dim
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
)
_OPERATORS: Mapping[type[ast.AST], tuple[str, tuple[str, ...]]] = {
    ast.Mult: ("*", ("/",)),
    ast.Div: ("/", ("*", "//")),
    ast.FloorDiv: ("//", ("/", "%")),
    ast.Mod: ("%", ("//",)),
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
_INFINITY = re.compile(r"""(torch|math|np|numpy)\.inf|float\(["']inf["']\)""")
_NO_MODULES = frozenset({"torch", "math", "np", "numpy", "F", "nn", "einops"})
# Calls that change what all code after them computes.
_SETTINGS = frozenset(
    {"manual_seed", "set_default_device", "set_default_dtype", "set_grad_enabled"}
)


# Rules for an answer that is wrong in only one way, by the words for that way.
_FOR_WAY = {
    "gradient": frozenset({"unwrap", "twin", "decorator", "in_place", "one_side"}),
    "dtype": frozenset({"cast", "unwrap", "twin", "argument"}),
    "device": frozenset({"cast", "unwrap", "argument"}),
    "in place": frozenset({"in_place", "clone", "unwrap"}),
    "no error": frozenset({"exception", "comparison", "negation", "statement", "parameter"}),
    "shape": frozenset(
        {
            *("axes", "axis", "keepdim", "shaped", "turned", "axis_added", "unwrap", "arguments"),
            *("size", "bound", "indices", "comma", "returned", "values"),
        }
    ),
}


@dataclass(frozen=True)
class Edit:
    """A change of one source: `parts` are (start, end, new text), from the first to the last.

    `kind` says in plain words what is changed, `start` and `end` are the characters to point at.
    Edits of a lower `cost` are likelier.
    """

    source: str
    parts: tuple[tuple[int, int, str], ...]
    kind: str
    rule: str
    start: int
    end: int
    cost: float

    def applied(self, text: str) -> str:
        """The source's text with the change."""
        for start, end, new in reversed(self.parts):
            text = text[:start] + new + text[end:]
        return text


# How many edits of a rule it takes until one hits, on the square root's scale: measured on wrong
# answers, and lower for what people get wrong most. Rules of a low cost are tried first.
_COSTS = {
    "setting": 0.0,  # before another candidate has made the setting in the shared worker
    **dict.fromkeys(("return", "transposed", "values", "signature"), 1.0),
    **dict.fromkeys(("kept", "keepdim", "in_place", "exception", "contiguous"), 2.0),
    **dict.fromkeys(("unused", "constant", "bound", "decorator", "comma", "parameters"), 2.5),
    **dict.fromkeys(("fixed", "infinity", "diagonal", "axis", "default", "returned"), 4.0),
    "unpacked": 4.0,
    "comparison": 3.5,
    **dict.fromkeys(("axes", "unwrap", "statement", "shaped"), 4.5),
    **dict.fromkeys(("one_side", "arguments", "order", "twin", "indices"), 5.5),
    **dict.fromkeys(("operator", "attribute", "number", "clone", "window"), 6.0),
    **dict.fromkeys(("size", "negation", "parameter", "number_name", "turned"), 7.0),
    **dict.fromkeys(("cast", "argument", "axes_far", "operands"), 9.0),
    **dict.fromkeys(("axis_added", "name", "returned_too"), 12.0),
}


def edits(
    sources: Sequence[tuple[str, str]],
    targets: Iterable[str],
    others: Iterable[str],
    lines: Mapping[str, Sequence[int]],
    signatures: Mapping[str, Sequence[str]],
    way: str = "",
) -> list[Edit]:
    """The edits of all that the `targets` (functions or "Class.method") reach, likeliest first.

    `sources` are names and texts; a later definition wins. It skips the definitions `others`.
    `lines`, by source, are those that an exception came through; `signatures`, by function, the
    parameters that are asked for. `way` is how all wrong answers are wrong, if in one way alone.
    """
    likely = _FOR_WAY.get(way, frozenset())
    found: list[Edit] = []
    for name, text, tree, roots in _reached(sources, targets, set(others)):
        reader = _Reader(name, text, tree, set(lines.get(name, ())), signatures, likely)
        for root in roots:
            found += reader.edits(root)
    best: dict[tuple[Any, ...], Edit] = {}
    for edit in found:
        key = (edit.source, edit.parts)
        if key not in best or edit.cost < best[key].cost:
            best[key] = edit
    return sorted(best.values(), key=lambda edit: edit.cost)[:MOST]


def as_data(found: Iterable[Edit]) -> list[list[Any]]:
    """Edits as JSON data, of which `Edit(*...)` makes edits again."""
    return [
        [e.source, [list(p) for p in e.parts], e.kind, e.rule, e.start, e.end, e.cost]
        for e in found
    ]


def _reached(
    sources: Sequence[tuple[str, str]], targets: Iterable[str], others: set[str]
) -> Iterator[tuple[str, str, ast.Module, list[ast.stmt]]]:
    """The sources with their definitions that the targets reach."""
    trees: list[tuple[str, str, ast.Module]] = []
    tops: dict[str, tuple[int, ast.stmt]] = {}
    roots: dict[int, list[ast.stmt]] = defaultdict(list)
    for name, text in sources:
        tree = _parsed(text)
        if tree is None:
            continue
        for statement in tree.body:
            for bound in _bound(statement):
                tops[bound] = len(trees), statement
            if _is_setting(statement):
                roots[len(trees)].append(statement)
        trees.append((name, text, tree))
    waiting = [target.split(".")[0] for target in targets]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name in others or name not in tops:
            continue
        seen.add(name)
        index, statement = tops[name]
        if statement not in roots[index]:
            roots[index].append(statement)
        waiting += (each.id for each in ast.walk(statement) if isinstance(each, ast.Name))
    for index, (name, text, tree) in enumerate(trees):
        yield name, text, tree, sorted(roots[index], key=lambda each: each.lineno)


def _parsed(text: str) -> ast.Module | None:
    if len(text) > LONGEST:
        return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, _DEFINITION):
        yield statement.name
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


@dataclass(frozen=True)
class _Change:
    """A change before it is ranked: `at` is what to point at."""

    start: int
    end: int
    new: str
    rule: str
    kind: str
    at: tuple[int, int]


@dataclass(frozen=True)
class _Scope:
    """What is known around a node: the function's parameters and names, the class's attributes."""

    params: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    names: Mapping[str, int] = field(default_factory=dict)  # and the first line that has them
    numbers: frozenset[str] = frozenset()  # those of them that are sizes and the like
    attributes: tuple[tuple[str, ...], ...] = ()  # of self, in groups: first what may be numbers
    idle: tuple[str, ...] = ()  # those of them that a call makes and nothing uses

    @property
    def own_numbers(self) -> tuple[str, ...]:
        """The attributes of self that may be numbers."""
        return self.attributes[0] if self.attributes else ()


class _Reader:
    """Reads one source; `lines` are those that an exception came through."""

    def __init__(
        self,
        name: str,
        text: str,
        tree: ast.Module,
        lines: set[int],
        signatures: Mapping[str, Sequence[str]],
        likely: Collection[str],
    ) -> None:
        self._signatures = signatures
        self._likely = likely
        self._name = name
        self._text = text
        self._lines = lines
        self._texts = text.split("\n")
        starts = itertools.accumulate((len(line) + 1 for line in self._texts), initial=0)
        self._starts = list(starts)
        self._parents = {
            child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
        }
        for node in ast.walk(tree):  # who raises an error tests something just before
            raised = node.body[0] if isinstance(node, ast.If) else None
            if isinstance(node, ast.If) and isinstance(raised, ast.Raise):
                self._lines |= {node.test.lineno} if raised.lineno in lines else set()
        self._origins = _origins(tree, self._lines)

    # --- where a node's text is ---

    def _offset(self, line: int, column: int) -> int:
        text = self._texts[line - 1]
        if not text.isascii():  # columns count bytes
            column = len(text.encode()[:column].decode("utf-8", "ignore"))
        return self._starts[line - 1] + column

    def _span(self, node: Any) -> tuple[int, int]:
        return (
            self._offset(node.lineno, node.col_offset),
            self._offset(node.end_lineno, node.end_col_offset),
        )

    def _code(self, node: Any) -> str:
        start, end = self._span(node)
        return self._text[start:end]

    def _tight(self, node: Any) -> str:
        """The node's text, in brackets unless it needs none."""
        code = self._code(node)
        return code if isinstance(node, _ATOMS) else f"({code})"

    def _changed(
        self, node: Any, new: str, rule: str, kind: str, at: Any = None
    ) -> Iterator[_Change]:
        start, end = self._span(node)
        yield _Change(start, end, new, rule, kind, self._span(at or node))

    def _line_of(self, offset: int) -> int:
        return self._text.count("\n", 0, offset) + 1

    # --- all edits of a definition ---

    def edits(self, root: ast.stmt) -> Iterator[Edit]:
        """The edits of one definition: each alone, and equal ones at once."""
        alike: dict[tuple[str, str, str, str], list[_Change]] = defaultdict(list)
        yield from self._of_signature(root)
        for change in self._changes(root, _Scope()):
            old = self._text[change.start : change.end]
            if old == change.new:
                continue
            yield self._edit([change])
            alike[change.rule, change.kind, old, change.new].append(change)
        for changes in alike.values():
            changes.sort(key=lambda each: each.start)
            apart = all(a.end <= b.start for a, b in itertools.pairwise(changes))
            if 1 < len(changes) <= 8 and apart:
                yield self._edit(changes)

    def _of_signature(self, root: Any) -> Iterator[Edit]:
        """Each parameter with the name that is asked for, wherever the function uses it."""
        inner = root.body if isinstance(root, ast.ClassDef) else [root]
        for node in (each for each in inner if isinstance(each, _FUNCTION)):
            name = node.name if node is root else f"{root.name}.{node.name}"
            own = [each.arg for each in node.args.args]
            asked = self._signatures.get(name, own)
            pairs = zip(node.args.args, asked, strict=False)
            names = {
                argument.arg: new
                for argument, new in pairs
                if argument.arg not in asked and new not in own
            }
            if not names:
                continue
            old = "this parameter" if len(names) == 1 else "these parameters"
            kind = f"the name of {old}, in the exercise {', '.join(names.values())}"
            places = [
                *((each, each.arg) for each in node.args.args),
                *((each, each.id) for each in ast.walk(node) if isinstance(each, ast.Name)),
            ]
            changes = []
            for each, name in places:
                if name in names:
                    start = self._span(each)[0]
                    span = start, start + len(name)
                    changes.append(_Change(*span, names[name], "signature", kind, span))
            yield self._edit(sorted(changes, key=lambda change: change.start))

    def _edit(self, changes: list[_Change]) -> Edit:
        first = changes[0]
        cost = _COSTS[first.rule] + 0.5 * (len(changes) > 1)
        if len(changes) > 2:
            cost *= 0.6  # who writes the same three times has the same mistake three times
        if first.rule in self._likely:
            cost *= 0.4
        if self._lines:
            touched = {self._line_of(each.start) for each in changes}
            cost *= 0.25 if touched & self._lines else 0.5 if touched & self._origins else 1.0
        parts = tuple((each.start, each.end, each.new) for each in changes)
        return Edit(self._name, parts, first.kind, first.rule, *first.at, cost)

    def _changes(self, node: Any, scope: _Scope) -> Iterator[_Change]:
        if isinstance(node, _FUNCTION):
            yield from self._of_function(node)
            scope = _scope(node, scope)
            yield from self._of_block(node.body)
            for statement in node.body:
                yield from self._changes(statement, scope)
            return
        if isinstance(node, ast.ClassDef):
            attributes = _attributes(node)
            scope = _Scope(attributes=attributes, idle=_idle(node, attributes))
        if isinstance(node, ast.Raise):
            yield from self._of_raise(node)
            return
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With)):
            yield from self._of_block(node.body)
        if isinstance(node, ast.expr):
            yield from self._of_expression(node, scope)
        elif isinstance(node, ast.stmt):
            yield from self._of_statement(node, scope)
        for child in ast.iter_child_nodes(node):
            is_note = _is_words(child) or child is getattr(node, "annotation", None)
            if isinstance(child, _READ) and not is_note:
                yield from self._changes(child, scope)

    # --- definitions and statements ---

    def _of_function(self, node: Any) -> Iterator[_Change]:
        arguments = node.args.args
        for one, other in itertools.pairwise(arguments):
            if one.arg == "self":
                continue
            start, end = self._span(one)[0], self._span(other)[1]
            defaults = dict(zip(arguments[::-1], node.args.defaults[::-1], strict=False))
            if one in defaults and other in defaults:
                end = self._span(defaults[other])[1]
                middle = self._span(defaults[one])[1]
                first, second = self._text[start:middle], self._text[self._span(other)[0] : end]
                yield _Change(
                    start,
                    end,
                    f"{second}, {first}",
                    "parameters",
                    "the order of these parameters",
                    (start, end),
                )
        bare = arguments[: len(arguments) - len(node.args.defaults)]
        if bare and bare[-1].arg != "self" and not node.args.vararg:
            last = bare[-1]
            new = f"{self._code(last)}=None"
            yield from self._changed(last, new, "default", "this parameter, which has no default")
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            if isinstance(default, ast.Constant) and isinstance(default.value, bool):
                new = str(not default.value)
                yield from self._changed(default, new, "constant", "the default of this parameter")
            elif isinstance(default, ast.Constant) and isinstance(default.value, float):
                yield from self._changed(
                    default, "0.0", "constant", "the default of this parameter"
                )
        for decorator in node.decorator_list:
            start, end = self._span(decorator)
            start = self._text.rindex("@", 0, start + 1) if "@" in self._text[:start] else start
            end = self._text.find("\n", end) + 1 or end
            indent = start - (self._text.rfind("\n", 0, start) + 1)
            at = self._span(decorator)
            yield _Change(start - indent, end, "", "decorator", "this decorator", at)
        last = node.body[-1]
        if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
            call = last.value
            if isinstance(call.func, ast.Name) and call.func.id == "print" and call.args:
                new = f"return {self._code(call.args[-1])}"
                yield from self._changed(last, new, "return", "this print, which returns nothing")
        if not any(isinstance(each, ast.Return) and each.value for each in _own(node)):
            yield from self._missing_return(node, last)

    def _missing_return(self, node: Any, last: ast.stmt) -> Iterator[_Change]:
        if node.name == "__init__":
            return
        kind = "the end of this function, which returns nothing"
        if isinstance(last, ast.Expr) and not _is_words(last):
            start, _ = self._span(last)
            yield _Change(start, start, "return ", "return", kind, self._span(last))
        if isinstance(last, ast.Assign) and isinstance(last.targets[0], (ast.Name, ast.Tuple)):
            _, end = self._span(last)
            indent = " " * last.col_offset
            new = f"\n{indent}return {self._code(last.targets[0])}"
            yield _Change(end, end, new, "return", kind, self._span(last))

    def _of_raise(self, node: ast.Raise) -> Iterator[_Change]:
        kind = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if isinstance(kind, ast.Name):
            for new in ("ValueError", "TypeError"):
                yield from self._changed(kind, new, "exception", "the kind of this exception")
        elif isinstance(kind, (ast.Constant, ast.JoinedStr)):
            new = f"ValueError({self._code(kind)})"
            yield from self._changed(
                kind, new, "exception", "this text, where an exception is expected"
            )

    def _of_block(self, body: Sequence[ast.stmt]) -> Iterator[_Change]:
        """Statements left out, and neighbours in the other order."""
        for statement in body:
            if isinstance(statement, (ast.Return, ast.Raise, ast.Pass, *_DEFINITION)):
                continue
            if isinstance(statement, (ast.Import, ast.ImportFrom)) or _is_words(statement):
                continue
            single = "\n" not in self._code(statement)
            at = self._span(statement if single else getattr(statement, "test", statement))
            kind = f"this {'statement' if single else 'block'}, which is not needed"
            if _refuses(statement):
                kind = "this condition, which refuses what is allowed"
            start, end = self._span(statement)
            yield _Change(start, end, "pass", "statement", kind, at)
        for one, other in itertools.pairwise(body):
            simple = (ast.Assign, ast.AugAssign, ast.Expr)
            if not isinstance(one, simple) or not isinstance(other, simple):
                continue
            if _is_words(one) or _is_words(other):
                continue
            start, end, new = self._exchanged(one, other)
            kind = "the order of these two statements"
            yield _Change(start, end, new, "order", kind, self._span(other))
            yield from self._other_order(one, other)

    def _exchanged(self, one: Any, other: Any) -> tuple[int, int, str]:
        """Where two nodes are, and their text in the other order."""
        start, end = self._span(one)[0], self._span(other)[1]
        between = self._text[self._span(one)[1] : self._span(other)[0]]
        return start, end, self._code(other) + between + self._code(one)

    def _other_order(self, one: Any, other: Any) -> Iterator[_Change]:
        """`a = f(x); b = g(a)` as `a = g(x); b = f(a)`"""
        if not (isinstance(one, ast.Assign) and isinstance(other, ast.Assign)):
            return
        name = one.targets[0]
        if not isinstance(name, ast.Name):
            return
        uses = [
            each
            for each in ast.walk(other.value)
            if isinstance(each, ast.Name) and each.id == name.id
        ]
        if len(uses) != 1:
            return
        for given in self._inner(one.value):
            first = self._code_with(other.value, uses[0], self._code(given))
            second = self._code_with(one.value, given, name.id)
            between = self._text[self._span(one.value)[1] : self._span(other.value)[0]]
            start, end = self._span(one.value)[0], self._span(other.value)[1]
            kind = "the order of these two steps"
            yield _Change(start, end, first + between + second, "order", kind, self._span(other))

    def _inner(self, node: ast.expr) -> Iterator[ast.expr]:
        """What a call or an operation is about: its receiver or first operand."""
        if isinstance(node, ast.Call):
            if node.args and not isinstance(node.args[0], (ast.Constant, ast.Starred)):
                yield node.args[0]
            if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
                yield node.func.value
        elif isinstance(node, ast.BinOp):
            yield node.left

    def _code_with(self, node: ast.expr, part: ast.expr, new: str) -> str:
        start, end = self._span(node)
        first, last = self._span(part)
        return self._text[start:first] + new + self._text[last:end]

    def _of_statement(self, node: ast.stmt, scope: _Scope) -> Iterator[_Change]:
        if isinstance(node, (ast.Assign, ast.Return)) and node.value is not None:
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for value, idle in itertools.product(values, scope.idle):
                kind = f"this value: {idle} is made and never used"
                new = f"{idle}({self._code(value)})"
                if not isinstance(value, ast.Constant) and "self" in scope.params:
                    yield from self._changed(value, new, "unused", kind)
        if isinstance(node, ast.AugAssign):
            symbol = _OPERATORS.get(type(node.op), ("",))[0]
            if isinstance(node.op, ast.MatMult):
                symbol = "@"
            if symbol:
                target = self._code(node.target).removesuffix(".data")
                new = f"{target} = {target} {symbol} ({self._code(node.value)})"
                kind = "this assignment, which changes a tensor in place"
                yield from self._changed(node, new, "in_place", kind)
                start, end = self._span(node.target)[1], self._span(node.value)[0]
                for other in _OPERATORS.get(type(node.op), ("", ()))[1]:
                    changed = self._text[start:end].replace(symbol, other, 1)
                    yield _Change(
                        start, end, changed, "operator", "this operator", self._span(node)
                    )
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            if _is_setting(node):
                kind = f"this call of {_called(node.value)}, which is not needed"
                yield from self._changed(node, "pass", "setting", kind)
            yield from self._thrown_away(node, node.value)
        elif isinstance(node, ast.Assign):
            if isinstance(node.value, ast.Tuple) and len(node.value.elts) == 1:
                new, kind = self._code(node.value.elts[0]), "this comma, which makes a tuple"
                yield from self._changed(node.value, new, "comma", kind)
            if isinstance(node.value, (ast.Name, ast.Attribute)):
                new = f"{self._code(node.value)}.clone()"
                yield from self._changed(node.value, new, "clone", "this name for the same tensor")
            yield from self._of_targets(node.targets[0])
        elif isinstance(node, ast.Return) and node.value is not None:
            yield from self._of_return(node.value, scope)
        elif isinstance(node, (ast.If, ast.While)):
            test = self._code(node.test)
            new = test[4:] if test.startswith("not ") else f"not ({test})"
            yield from self._changed(
                node.test, new, "negation", "this condition, the other way round"
            )

    def _of_targets(self, target: ast.expr) -> Iterator[_Change]:
        """Two of the names that a value is unpacked into, exchanged."""
        names = target.elts if isinstance(target, ast.Tuple) else []
        if len(names) > 4 or not all(isinstance(each, (ast.Name, ast.Attribute)) for each in names):
            return
        for one, other in itertools.combinations(names, 2):
            start, end, new = self._exchanged(one, other)
            kind = "the order of these names"
            yield _Change(start, end, new, "unpacked", kind, self._span(target))

    def _thrown_away(self, node: ast.Expr, call: ast.Call) -> Iterator[_Change]:
        kind = "the result of this call, which is thrown away"
        name = _called(call)
        if name.endswith("Error"):
            unraised = "this exception, which is not raised"
            yield from self._changed(node, f"raise {self._code(call)}", "exception", unraised)
            return
        if name.endswith("_") and isinstance(call.func, ast.Attribute):
            owner = self._code(call.func.value).removesuffix(".data")
            if re.fullmatch(r"(self\.)?\w+", owner) and owner not in _NO_MODULES:
                given = self._text[self._span(call.func)[1] : self._span(call)[1]]
                new = f"{owner} = {owner}.{name[:-1]}{given}"
                in_place = f"{name}, which changes the tensor in place"
                yield from self._changed(node, new, "in_place", in_place)
        owners = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        for each in (*owners, *call.args[:1]):
            root = each
            while isinstance(root, (ast.Attribute, ast.Call, ast.Subscript)):
                if isinstance(root, ast.Attribute) and isinstance(root.value, ast.Name):
                    break
                root = root.func if isinstance(root, ast.Call) else root.value
            if isinstance(root, (ast.Name, ast.Attribute)) and not _is_module(root):
                name = self._code(root)
                yield from self._changed(node, f"{name} = {self._code(call)}", "kept", kind)

    def _of_return(self, value: ast.expr, scope: _Scope) -> Iterator[_Change]:
        code = self._code(value)
        if isinstance(value, ast.Call) and _called(value).endswith("Error"):
            new, kind = f"raise {code}", "this exception, which is returned"
            yield from self._changed(self._parents[value], new, "exception", kind)
        if isinstance(value, ast.Constant) and value.value in (None, False):
            kind = "this return, where an exception is expected"
            yield from self._changed(self._parents[value], "raise ValueError", "exception", kind)
        if isinstance(value, ast.ListComp):
            for axis in (1, -1, 0):
                kind = "this list, where one tensor is expected"
                new = f"__import__('torch').stack({code}, dim={axis})"
                yield from self._changed(value, new, "returned", kind)
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        if isinstance(value, ast.List) and len(value.elts) > 1:
            new = f"({', '.join(map(self._code, value.elts))})"
            yield from self._changed(value, new, "returned", "this list, where a tuple is expected")
        if isinstance(value, ast.Dict) and len(value.values) > 1:
            new = f"({', '.join(map(self._code, value.values))})"
            yield from self._changed(value, new, "returned", "this dict, where a tuple is expected")
        if isinstance(value, ast.Tuple):
            if len(value.elts) == 1:
                new = self._code(value.elts[0])
                yield from self._changed(value, new, "comma", "this comma, which makes a tuple")
            elif len(value.elts) == 2:
                one, other = map(self._code, value.elts)
                kind = "the order of these results"
                yield from self._changed(value, f"{other}, {one}", "returned", kind)
                yield from self._changed(value, one, "returned", "what is returned")
        elif not isinstance(value, (ast.List, ast.Dict, ast.Constant)):
            for name in scope.names:
                if name != code:
                    new = f"{code}, {name}"
                    yield from self._changed(value, new, "returned_too", "what is returned")
        for each in values:
            if isinstance(each, (ast.Constant, ast.Dict, ast.List)):
                continue
            tight = self._tight(each)
            for given in [name for name in scope.params if name != "self"][:2]:
                if not isinstance(each, ast.Name) or each.id != given:
                    new = f"{tight}.to({given}.dtype)"
                    yield from self._changed(each, new, "cast", "the dtype of this result")
            for step in (".transpose(1, 2)", ".transpose(-2, -1)"):
                kind = "this result, whose axes are in another order"
                yield from self._changed(each, tight + step, "turned", kind)
            yield from self._changed(
                each, f"~{tight}", "negation", "this result, the other way round"
            )
            for axis in (0, 1, -1):
                kind = "this result, which lacks an axis"
                yield from self._changed(each, f"{tight}.unsqueeze({axis})", "axis_added", kind)
            yield from self._changed(each, f"{tight}.bool()", "cast", "the dtype of this result")

    # --- expressions ---

    def _of_expression(self, node: ast.expr, scope: _Scope) -> Iterator[_Change]:
        parent = self._parents[node]
        if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            return
        if isinstance(node, ast.Call):
            yield from self._of_call(node, scope)
        elif isinstance(node, ast.BinOp):
            yield from self._of_operation(node)
        elif isinstance(node, ast.Compare):
            yield from self._of_comparison(node)
        elif isinstance(node, ast.BoolOp):
            yield from self._of_boolean(node)
        elif isinstance(node, ast.UnaryOp):
            new = self._tight(node.operand)
            kind = "this minus" if isinstance(node.op, ast.USub) else "this negation"
            if not isinstance(node.operand, ast.Constant):
                yield from self._changed(node, new, "negation", kind)
            if isinstance(node.op, ast.Invert):
                yield from self._changed(node, f"({new} == 0)", "negation", kind)
        elif isinstance(node, ast.Subscript):
            yield from self._of_subscript(node)
        elif isinstance(node, ast.Constant):
            yield from self._of_constant(node, parent, scope)
        elif isinstance(node, ast.Name):
            yield from self._of_name(node, parent, scope)
        elif isinstance(node, ast.Attribute):
            yield from self._of_attribute(node, parent, scope)
        elif isinstance(node, ast.IfExp):
            one, other = self._tight(node.body), self._tight(node.orelse)
            test = self._code(node.test)
            kind = "the two sides of this condition"
            yield from self._changed(node, f"{other} if {test} else {one}", "negation", kind)
            yield from self._changed(node, one, "one_side", kind)
            yield from self._changed(node, other, "one_side", kind)
        if isinstance(node, _ATOMS) and not isinstance(node, (ast.List, ast.Dict)):
            yield from self._of_operand(node, parent)

    def _of_operand(self, node: ast.expr, parent: Any) -> Iterator[_Change]:
        """A step that is missing after what is passed on."""
        if isinstance(node, ast.Name) and node.id in _NO_MODULES:
            return
        code = self._code(node)
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.MatMult):
            for axes in ("-2, -1", "1, 2"):
                new = f"{code}.transpose({axes})"
                yield from self._changed(
                    node, new, "turned", "this operand, which is not transposed"
                )
        is_numeric = isinstance(parent, (ast.Compare, ast.BinOp))
        called = _called(parent) if isinstance(parent, ast.Call) else ""
        is_filled = (
            called in ("masked_fill", "masked_fill_", "where", "matmul") and node in parent.args
        )
        if is_numeric or is_filled:
            for axis in (-1, 1, 0, 2):
                kind = "this tensor, which lacks an axis"
                new = f"{code}.unsqueeze({axis})"
                yield from self._changed(node, new, "axis_added", kind)
        if is_filled:
            kind = "this mask, the other way round"
            yield from self._changed(node, f"~{code}", "negation", kind)
            yield from self._changed(node, f"({code} == 0)", "negation", kind)
        if called == "matmul" and node in parent.args:
            new = f"{code}.transpose(-2, -1)"
            yield from self._changed(node, new, "turned", "this operand, which is not transposed")
        is_called = isinstance(self._parents.get(parent), ast.Call)
        if isinstance(parent, ast.Attribute) and is_called and parent.attr in _LAYING:
            for axes in ("1, 2", "-2, -1", "0, 1"):
                new = f"{code}.transpose({axes})"
                kind = f"this tensor, whose axes are in another order before {parent.attr}"
                yield from self._changed(node, new, "turned", kind)
            kind = "this tensor, which is not contiguous"
            yield from self._changed(node, f"{code}.contiguous()", "contiguous", kind)

    def _of_call(self, node: ast.Call, scope: _Scope) -> Iterator[_Change]:
        name = _called(node)
        method = isinstance(node.func, ast.Attribute) and not _is_module(node.func.value)
        yield from self._of_axes(node, name, method)
        yield from self._unwrapped(node, method)
        yield from self._of_arguments(node, name)
        yield from self._repeated(node, name, method)
        for one, other in _TWINS:
            twin = other if name == one else one if name == other else ""
            if twin:
                yield from self._renamed(node, twin, "twin")
        if method and name.endswith("_") and not name.startswith("_"):
            kind = f"{name}, which changes the tensor in place"
            yield from self._renamed(node, name[:-1], "in_place", kind)
        given = {keyword.arg for keyword in node.keywords}
        start, end = self._span(node)
        has_axis = bool(given & {"dim", "axis"}) or len(node.args) > (0 if method else 1)
        at = start, end
        comma = ", " if node.args or node.keywords else ""
        close = end - 1
        if self._text[start:close].rstrip().endswith(","):
            comma = " "
        if name in _KEEPS_AXIS and "keepdim" not in given and has_axis:
            kind = f"this {name}, which drops the axis"
            yield _Change(close, close, f"{comma}keepdim=True", "keepdim", kind, at)
        for keyword in node.keywords:
            if keyword.arg in ("keepdim", "keepdims"):
                yield from self._changed(keyword.value, "False", "keepdim", f"this {name}")
        if name in _KEEPS_AXIS | {"softmax", "log_softmax", "Softmax"} and not has_axis:
            kind = f"this {name}, which names no axis"
            for more in ("dim=-1", "dim=-1, keepdim=True"):
                yield _Change(close, close, f"{comma}{more}", "axis", kind, at)
        parent = self._parents[node]
        is_taken = isinstance(parent, (ast.Attribute, ast.Subscript))
        if method and name in _WITH_PLACES and has_axis and not is_taken:
            kind = f"this {name}, which gives values and indices"
            yield from self._changed(node, f"{self._code(node)}.values", "values", kind)
        if name in ("tril", "triu") and "diagonal" not in given:
            for diagonal in (1, -1):
                kind = "the diagonal of this triangle"
                if len(node.args) == (0 if method else 1):
                    yield _Change(close, close, f"{comma}diagonal={diagonal}", "diagonal", kind, at)
        for unused in scope.unused:
            if unused not in given and not method:
                kind = f"this call, which does not get {unused}"
                yield _Change(close, close, f"{comma}{unused}={unused}", "unused", kind, at)

    def _renamed(self, node: ast.Call, name: str, rule: str, kind: str = "") -> Iterator[_Change]:
        _, end = self._span(node.func)
        old = _called(node)
        kind = kind or f"this {old}"
        yield _Change(end - len(old), end, name, rule, kind, self._span(node))

    def _of_axes(self, node: ast.Call, name: str, method: bool) -> Iterator[_Change]:
        words = f"the axis of this {name}"
        for keyword in node.keywords:
            if keyword.arg in ("dim", "axis", "start_dim", "dim0", "dim1"):
                for new in _other_axes(_integer(keyword.value)):
                    yield from self._changed(keyword.value, str(new), "axis", words, node)
        values = [_integer(each) for each in node.args]
        axes = node.args if method else node.args[1:]
        if name in _TWO_AXES and len(axes) == 2 and None not in map(_integer, axes):
            one, other = (_integer(each) for each in axes)
            pairs = [(1, 2), (2, 3), (1, 3), (0, 1), (0, 2), (-2, -1)]
            start, end = self._span(axes[0])[0], self._span(axes[1])[1]
            kind = f"the axes of this {name}"
            for pair in pairs:
                if {one, other} != set(pair):
                    both = f"{pair[0]}, {pair[1]}"
                    yield _Change(start, end, both, "axes", kind, self._span(node))
        elif name == "permute":
            yield from self._permuted(node, axes)
        elif name in _OVER_AXIS:
            has_number = name in ("chunk", "split", "topk", "repeat_interleave", "roll")
            first = (not method) + has_number
            for index, value in enumerate(values):
                if index >= first:
                    for new in _other_axes(value):
                        yield from self._changed(node.args[index], str(new), "axis", words, node)

    def _permuted(self, node: ast.Call, axes: Sequence[ast.expr]) -> Iterator[_Change]:
        if len(axes) == 1 and isinstance(axes[0], (ast.Tuple, ast.List)):
            axes = axes[0].elts
        values = [_integer(each) for each in axes]
        if len(values) < 3 or len(values) > 5 or None in values:
            return
        start, end = self._span(axes[0])[0], self._span(axes[-1])[1]
        for order in itertools.permutations(values):
            moved = sum(a != b for a, b in zip(order, values, strict=True))
            if moved and (moved == 2 or len(values) < 5):
                rule = "axes" if moved == 2 else "axes_far"
                new = ", ".join(map(str, order))
                yield _Change(start, end, new, rule, "the axes of this permute", self._span(node))

    def _unwrapped(self, node: ast.Call, method: bool) -> Iterator[_Change]:
        """`f(x)` as `x`, `x.f()` as `x`"""
        name = _called(node)
        kind = f"this call of {name}, which is not needed"
        if isinstance(self._parents[node], ast.Expr):
            return
        if method and isinstance(node.func, ast.Attribute):
            dot = self._span(node.func)[1] - len(name) - 1
            end = self._span(node)[1]
            if self._text[dot] == ".":  # of a chain, only this call is pointed at
                yield _Change(dot, end, "", "unwrap", kind, (dot, end))
        if node.args and not isinstance(node.args[0], (ast.Constant, ast.Starred)):
            yield from self._changed(node, self._tight(node.args[0]), "unwrap", kind, node)
            inner = node.args[0]
            if isinstance(inner, ast.Call) and inner.args:  # f(g(x)) as g(f(x))
                start, end = self._span(node)
                func, within = self._span(node.func), self._span(inner.func)
                new = (
                    self._text[within[0] : within[1]]
                    + self._text[within[1] : self._span(inner.args[0])[0]]
                    + self._code_with(node, inner, self._code(inner.args[0]))
                    + self._text[self._span(inner.args[0])[1] : self._span(inner)[1]]
                )
                kind = "the order of these two calls"
                yield _Change(start, end, new, "order", kind, (func[0], end))
        below: Any = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_chain = isinstance(below, ast.Call) and isinstance(below.func, ast.Attribute)
        if is_chain and not _is_module(below.func.value):  # x.f().g() as x.g().f()
            base = self._span(below.func.value)[1]
            middle, end = self._span(below)[1], self._span(node)[1]
            new = self._text[middle:end] + self._text[base:middle]
            kind = "the order of these two calls"
            yield _Change(base, end, new, "order", kind, self._span(node))

    def _of_bounds(self, node: ast.Call, name: str) -> Iterator[_Change]:
        """`range(1, n + 1)` as `range(n)`, `arange(a, n)` as `arange(a, a + n)`"""
        if name not in ("range", "arange") or len(node.args) != 2:
            return
        first, last = node.args
        span = self._span(first)[0], self._span(last)[1]
        counts_one_more = isinstance(last, ast.BinOp) and isinstance(last.op, ast.Add)
        if _integer(first) == 1 and counts_one_more:
            new = self._code(last.left)  # type: ignore[attr-defined]
            yield _Change(*span, new, "bound", f"the bounds of this {name}", self._span(node))
        if isinstance(first, (ast.Name, ast.Attribute)):
            code = self._code(first)
            new = f"{code}, {code} + {self._tight(last)}"
            yield _Change(*span, new, "bound", f"the end of this {name}", self._span(node))

    def _repeated(self, node: ast.Call, name: str, method: bool) -> Iterator[_Change]:
        """`x.repeat(1, n)` as `x.repeat_interleave(n, dim=-1)`"""
        if name not in ("repeat", "tile") or not method or not isinstance(node.func, ast.Attribute):
            return
        args = node.args
        if len(args) == 1 and isinstance(args[0], (ast.Tuple, ast.List)):
            args = args[0].elts
        several = [place for place, each in enumerate(args) if _integer(each) != 1]
        if len(several) == 1 and len(args) > 1:
            [place] = several
            dot = self._span(node.func)[1] - len(name) - 1
            new = f".repeat_interleave({self._code(args[place])}, dim={place - len(args)})"
            kind = f"this {name}, which repeats in turns"
            yield _Change(dot, self._span(node)[1], new, "twin", kind, self._span(node))

    def _of_arguments(self, node: ast.Call, name: str) -> Iterator[_Change]:
        yield from self._of_bounds(node, name)
        args = node.args
        if len(args) == 1 and isinstance(args[0], (ast.Tuple, ast.List)) and name in _SHAPING:
            args = args[0].elts
        for index, (one, other) in enumerate(itertools.pairwise(args)):
            if name in _TWO_AXES or isinstance(one, ast.Starred) or isinstance(other, ast.Starred):
                continue
            start, end, new = self._exchanged(one, other)
            kind = "the order of these arguments"
            at = start, end
            if name in _SHAPING:
                kind = f"the order of the sizes in this {name}"
            yield _Change(start, end, new, "arguments", kind, at)
            if name in _SHAPING and len(args) > 2:
                at = self._span(node)
                dot = self._span(node.func)[1] - len(name) - 1
                turned = self._text[dot:start] + new + self._text[end : at[1]]
                turned += f".transpose({index}, {index + 1})"
                kind = f"this {name}, which does not exchange axes"
                yield _Change(dot, at[1], turned, "shaped", kind, at)
        if name in _SHAPING and len(args) > 2:
            for axis in (1, 2):
                kind = f"this {name}, after which the axes are in another order"
                new = f"{self._code(node)}.transpose({axis}, {axis + 1})"
                yield from self._changed(node, new, "turned", kind)
        if len(args) > 1 and name not in _SHAPING and name not in ("permute", *_TWO_AXES):
            start, end = self._span(args[-2])[1], self._span(args[-1])[1]
            kind = "this argument, which is not needed"
            yield _Change(start, end, "", "argument", kind, self._span(args[-1]))
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg in ("dim", "axis", "keepdim"):
                continue
            start, end = self._span(keyword)
            before = self._text[:start].rstrip()
            if before.endswith(","):
                start = len(before) - 1
                kind = "this argument, which is not needed"
                yield _Change(start, end, "", "argument", kind, self._span(keyword))

    def _of_operation(self, node: ast.BinOp) -> Iterator[_Change]:
        symbol, others = _OPERATORS.get(type(node.op), ("", ()))
        if isinstance(node.op, ast.Pow):
            symbol, others = "**", ("*",)
        yield from self._operator(node.left, node.right, symbol, others, node)
        kind = "this operation, which is not needed"
        start, end = self._span(node)
        left = self._span(node.left)[1]
        between = self._text[left : self._span(node.right)[0]]
        sign = between.strip("() \t\n\\")
        after = left + between.index(sign)
        for kept, at in ((node.left, (after, end)), (node.right, (start, after + len(sign)))):
            if not isinstance(kept, ast.Constant):
                yield _Change(start, end, self._tight(kept), "one_side", kind, at)
        one_way = isinstance(node.op, (ast.Div, ast.Sub, ast.MatMult, ast.FloorDiv, ast.Mod))
        if one_way and not set(between) & set("()#"):
            new = self._tight(node.right) + between + self._tight(node.left)
            rule = "order" if isinstance(node.op, ast.Mod) else "operands"
            yield _Change(start, end, new, rule, "the order of these operands", (start, end))

    def _operator(
        self, left: ast.expr, right: ast.expr, old: str, others: Iterable[str], at: ast.AST
    ) -> Iterator[_Change]:
        start, end = self._span(left)[1], self._span(right)[0]
        between = self._text[start:end]
        if not old or "#" in between or between.count(old) != 1:
            return
        where = start + between.index(old)
        word = "comparison" if isinstance(at, ast.Compare) else "operator"
        rule = "comparison" if isinstance(at, ast.Compare) else "operator"
        for other in others:
            yield _Change(where, where + len(old), other, rule, f"this {word}", self._span(at))

    def _of_comparison(self, node: ast.Compare) -> Iterator[_Change]:
        operands = [node.left, *node.comparators]
        for operator, (left, right) in zip(node.ops, itertools.pairwise(operands), strict=True):
            old, others = _OPERATORS.get(type(operator), ("", ()))
            yield from self._operator(left, right, old, others, node)

    def _of_boolean(self, node: ast.BoolOp) -> Iterator[_Change]:
        old, others = _OPERATORS[type(node.op)]
        for left, right in itertools.pairwise(node.values):
            yield from self._operator(left, right, old, others, node)
        for each in node.values:
            code = self._tight(each)
            if len(node.values) == 2:
                kind = "this condition, half of which is not needed"
                yield from self._changed(node, code, "one_side", kind)
            new = f"(not {code})"
            yield from self._changed(each, new, "negation", "this condition, the other way round")

    def _of_subscript(self, node: ast.Subscript) -> Iterator[_Change]:
        index = node.slice
        is_shape, number = _is_size(node), _integer(index)
        if is_shape and number is not None:
            for new in (-1, 1, 2, 0, -2, 3):
                if new != number:
                    yield from self._changed(index, str(new), "size", "the axis of this size", node)
            return
        if not is_shape:
            kind = "this part of the tensor, where all of it is needed"
            yield from self._changed(node, self._tight(node.value), "unwrap", kind)
        if isinstance(index, ast.Tuple) and 1 < len(index.elts) <= 4:
            codes = [self._code(each) for each in index.elts]
            kind = "the order of these indices"
            for order in set(itertools.permutations(codes)):
                if list(order) != codes:
                    yield from self._changed(index, ", ".join(order), "indices", kind, node)
        if isinstance(index, ast.Tuple):
            for each in index.elts:
                yield from self._of_window(each, node)
        elif isinstance(index, ast.Slice):
            yield from self._of_window(index, node)
            for side in (index.lower, index.upper, index.step):
                if side is not None:
                    kind = "this bound"
                    yield from self._changed(side, "", "bound", kind, node)
                    for more in (" + 1", " - 1"):
                        yield from self._changed(
                            side, self._tight(side) + more, "bound", kind, node
                        )

    def _of_window(self, index: ast.expr, at: ast.AST) -> Iterator[_Change]:
        """`i:i + n` as `i * n:(i + 1) * n`"""
        if not (isinstance(index, ast.Slice) and isinstance(index.upper, ast.BinOp)):
            return
        lower, upper = index.lower, index.upper
        is_sum = isinstance(lower, ast.Name) and isinstance(upper.op, ast.Add)
        if is_sum and self._code(upper.left) == self._code(lower):
            name, size = self._code(lower), self._tight(upper.right)
            new = f"{name} * {size}:({name} + 1) * {size}"
            yield from self._changed(index, new, "window", "the bounds of this slice", at)

    def _of_constant(self, node: ast.Constant, parent: Any, scope: _Scope) -> Iterator[_Change]:
        value = node.value
        sign = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub)
        whole: Any = parent if sign else node
        above = self._parents[whole]
        if isinstance(value, bool):
            new = str(not value)
            yield from self._changed(node, new, "constant", f"this {value}")
            if isinstance(above, ast.keyword) and above.arg in scope.params:
                kind = f"this {value}, where {above.arg} is expected"
                yield from self._changed(node, above.arg, "unused", kind)
        elif isinstance(value, (int, float)):
            if _is_axis(above):
                return
            kind = "this number"
            is_large = sign and value >= 100
            if is_large or isinstance(value, float) or value == 0:
                yield from self._changed(whole, 'float("-inf")', "infinity", kind)
            if isinstance(value, int):
                for other in (value + 1, value - 1):
                    yield from self._changed(node, str(other), "number", kind)
                if value > 1 and not sign:
                    for name in (*sorted(scope.numbers), *scope.own_numbers):
                        yield from self._changed(node, name, "fixed", "this fixed number")
            if isinstance(value, float):
                for code in ("0.0", "1.0", "0.5"):
                    if float(code) != value:
                        yield from self._changed(node, code, "number", kind)
                if sign:
                    yield from self._changed(whole, self._code(node), "number", kind)
                elif isinstance(self._parents[node], ast.BinOp) or value == 0.5:
                    yield from self._changed(node, f"-{self._code(node)}", "number", kind)
        elif isinstance(value, str) and isinstance(above, ast.Call) and "->" in value:
            before, arrow, letters = value.partition("->")
            for at in range(len(letters) - 1):
                turned = letters[:at] + letters[at + 1] + letters[at] + letters[at + 2 :]
                new = repr(before + arrow + turned)
                yield from self._changed(node, new, "indices", "the order of the result's axes")
            yield from self._of_letters(node, before, letters)
        elif value is None and isinstance(above, ast.keyword) and above.arg in scope.params:
            yield from self._changed(node, above.arg, "unused", "this None")

    def _of_letters(self, node: ast.Constant, before: str, letters: str) -> Iterator[_Change]:
        """An axis that einsum sums over though it must stay, and one letter for another."""
        result = letters.strip()
        for letter in sorted({each for each in before if each.isalpha()} - set(result)):
            for at in range(len(result) + 1):
                new = repr(f"{before}->{result[:at]}{letter}{result[at:]}")
                kind = "the letters of the result, which lack an axis"
                yield from self._changed(node, new, "indices", kind)
            places = [at for at, each in enumerate(before) if each == letter]
            for other in sorted({each for each in before if each.isalpha()} - {letter}):
                if len(places) == 1:
                    new = repr(f"{before[: places[0]]}{other}{before[places[0] + 1 :]}->{letters}")
                    kind = "the letters of the operands"
                    yield from self._changed(node, new, "indices", kind)

    def _of_name(self, node: ast.Name, parent: Any, scope: _Scope) -> Iterator[_Change]:
        if isinstance(parent, ast.Call) and parent.func is node:
            return
        if node.id not in scope.names or node.id == "self":
            return
        is_param = node.id in scope.params
        for other, line in scope.names.items():
            is_there = line < node.lineno
            alike = (other in scope.numbers) == (node.id in scope.numbers)
            if other not in (node.id, "self") and is_there and alike:
                rule = "parameter" if is_param and other in scope.params else "name"
                yield from self._changed(node, other, rule, "this name")
        is_size = isinstance(parent, ast.Call) and _called(parent) in ("sqrt", *_SHAPING)
        if is_size or (isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Pow)):
            for other in scope.own_numbers[:6]:
                yield from self._changed(node, other, "number_name", "this name")

    def _of_attribute(self, node: ast.Attribute, parent: Any, scope: _Scope) -> Iterator[_Change]:
        if node.attr in ("T", "H"):
            code = self._tight(node.value)
            kind = f"this .{node.attr}, which reverses all axes"
            yield from self._changed(node, f"{code}.transpose(-2, -1)", "transposed", kind)
            yield from self._changed(node, f"{code}.transpose(1, 2)", "transposed", kind)
        if node.attr in ("mT", "data", "T", "real", "indices"):
            kind = f"this .{node.attr}, which is not needed"
            yield from self._changed(node, self._tight(node.value), "unwrap", kind)
        if node.attr == "indices":
            yield from self._changed(
                node, f"{self._tight(node.value)}.values", "values", "these indices"
            )
        if _is_of_self(node):
            code = f"self.{node.attr}"
            for group in scope.attributes:
                if code in group:
                    for other in group:
                        if other != code:
                            yield from self._changed(node, other, "attribute", "this attribute")
        if _INFINITY.fullmatch(self._code(node)) and not isinstance(parent, ast.UnaryOp):
            yield from self._changed(
                node, f"-{self._code(node)}", "infinity", "the sign of this infinity"
            )


# --- what a name is ---------------------------------------------------------------------------


def _called(node: ast.Call) -> str:
    """The last name of what is called."""
    func = node.func
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _is_setting(node: ast.stmt) -> bool:
    """Whether it is a call that changes what all code after it computes."""
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and _called(call) in _SETTINGS


def _is_module(node: ast.expr) -> bool:
    """Whether it looks like a library, not like a tensor: torch, nn.functional, self."""
    while isinstance(node, ast.Attribute):
        node = node.value
        if isinstance(node, ast.Name) and node.id == "self":
            return False
    return isinstance(node, ast.Name) and node.id in _NO_MODULES | {"self"}


def _is_axis(above: Any) -> bool:
    """Whether another rule turns a number there."""
    if isinstance(above, ast.keyword):
        return above.arg in ("dim", "axis", "dim0", "dim1", "start_dim", "keepdim")
    if isinstance(above, ast.Subscript):
        return _is_size(above)
    return isinstance(above, ast.Call) and _called(above) in _OVER_AXIS | _TWO_AXES | {"permute"}


def _is_size(node: ast.Subscript) -> bool:
    value = node.value
    if isinstance(value, ast.Attribute):
        return value.attr == "shape"
    return isinstance(value, ast.Call) and _called(value) == "size"


def _integer(node: ast.AST) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _integer(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def _other_axes(value: int | None) -> Iterator[int]:
    if value is not None:
        yield from (each for each in (-1, 1, 2, -2, 0, 3) if each != value)


def _refuses(statement: ast.stmt) -> bool:
    """Whether a statement only raises an exception, on a condition."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    return all(isinstance(each, ast.Raise) for each in statement.body)


def _is_words(node: ast.AST) -> bool:
    """Whether it is a docstring, or a string that stands alone."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _own(node: Any) -> Iterator[ast.AST]:
    """What is in a function, but not in another one within it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*_DEFINITION, ast.Lambda)):
            yield child
            yield from _own(child)


def _scope(node: Any, around: _Scope) -> _Scope:
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
    return _Scope(params, unused, names, frozenset(numbers), around.attributes, around.idle)


def _origins(tree: ast.Module, lines: Collection[int]) -> set[int]:
    """The lines that assign a name, or an attribute of self, that one of these lines reads."""
    if not lines:
        return set()
    named = [each for each in ast.walk(tree) if isinstance(each, ast.Name) or _is_of_self(each)]
    read = {ast.unparse(each) for each in named if each.lineno in lines}
    return {
        each.lineno
        for each in named
        if isinstance(each.ctx, ast.Store) and ast.unparse(each) in read
    }


def _is_of_self(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _is_number(value: ast.expr, numbers: set[str]) -> bool:
    """Whether it is a size, a tuple of sizes, or is worked out of sizes."""
    if isinstance(value, ast.Call):
        return _called(value) in ("size", "len", "int", "sqrt", "dim")
    if isinstance(value, ast.Attribute):
        return value.attr == "shape"
    if isinstance(value, ast.Subscript):
        return _is_size(value)
    if isinstance(value, ast.Tuple):
        return all(_is_number(each, numbers) for each in value.elts)
    if isinstance(value, ast.BinOp):
        return _is_number(value.left, numbers) and _is_number(value.right, numbers)
    if isinstance(value, ast.Name):
        return value.id in numbers
    return isinstance(value, ast.Constant)


def _attributes(node: ast.ClassDef) -> tuple[tuple[str, ...], ...]:
    """The attributes of self in groups: what may be numbers, then what one call makes."""
    groups: dict[str, dict[str, None]] = defaultdict(dict, {"": {}})
    for each in ast.walk(node):
        if not isinstance(each, ast.Assign):
            continue
        is_made = isinstance(each.value, ast.Call) and not _is_number(each.value, set())
        made = ast.unparse(each.value.func) if is_made else ""  # type: ignore[attr-defined]
        for target in each.targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            for part in filter(_is_of_self, parts):
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
