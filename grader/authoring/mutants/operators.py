"""The operators that make mutants of a solution: mutmut's, and our own below. Needs mutmut.

General changes come from mutmut: another number, another operator, a missing argument. Our own
operators change arrays and their axes, defaults and statements.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

_AXES = (0, 1, 2, -1)  # in place of an axis counted from the front
_LAST_AXES = (-1, -2, -3, 0)  # in place of an axis counted from the end
_AXIS_WORDS = frozenset({"dim", "axis"})
# Functions and methods whose integers are axes.
_OVER_AXES = frozenset(
    {
        *("sum", "mean", "std", "var", "norm", "prod", "cumsum", "cumprod", "logsumexp"),
        *("all", "any", "sort", "argsort"),
        *("transpose", "swapaxes", "swapdims", "movedim", "permute", "unsqueeze", "squeeze"),
        *("size", "select", "narrow", "gather", "index_select", "expand_dims", "concatenate"),
        *("flatten", "unflatten", "repeat_interleave", "unbind", "flip", "roll", "diff"),
    }
)
_EXTREMES = ("max", "min")  # endings of more such names
_AXES_SECOND = frozenset({"cat", "stack", "chunk", "split", "topk", "tensor_split"})
_TWINS = (
    *(("tril", "triu"), ("max", "min"), ("amax", "amin"), ("any", "all"), ("sum", "mean")),
    *(("ones", "zeros"), ("ones_like", "zeros_like"), ("ones_", "zeros_"), ("cos", "sin")),
    *(("cat", "stack"), ("repeat", "repeat_interleave"), ("floor", "ceil"), ("exp", "log")),
    *(("argmax", "argmin"), ("maximum", "minimum"), ("isalpha", "isalnum"), ("lower", "upper")),
)
_TWIN = {one: other for pair in _TWINS for one, other in (pair, pair[::-1])}
_TRIANGLES = frozenset({"tril", "triu"})
# Methods of tensors that also have an in-place form.
_IN_PLACE = frozenset(
    {
        *("masked_fill", "add", "sub", "mul", "div", "exp", "neg", "clamp", "fill", "where"),
        *("tril", "triu", "abs", "sqrt", "pow", "index_fill", "copy"),
    }
)
_TURNED = frozenset({"T", "mT", "H", "mH"})
_SYMMETRIC = frozenset({"transpose", "swapaxes", "swapdims", "max", "min", "maximum", "minimum"})
_COUNTS = frozenset({"range", "arange"})
_NUMBERS = frozenset({"int", "float", "bool"})
_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))  # as for arguments
_TORCH = re.compile(r"^[ \t]*(?:import|from) torch\b", re.MULTILINE)


@dataclass(frozen=True)
class _Around:
    """The surroundings of a node."""

    parent: Any
    function: str  # its qualified name
    libraries: frozenset[str]  # names that the module imports
    # Names that are easy to confuse: parameters of one type, attributes `self.name` that one
    # function makes.
    alike: tuple[tuple[str, ...], ...]
    integers: frozenset[str]  # the function's parameters that are annotated as integers
    has_torch: bool
    has_gradients: bool  # whether the function's arguments may have gradients


def changes(source: str, solutions: list[tuple[int, int]]) -> Iterator[tuple[str, str, str]]:
    """For each change: the function, the operator, and the changed source."""
    wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
    places = wrapper.resolve(PositionProvider)
    module = wrapper.module
    libraries = frozenset(_imported(module))
    has_torch = _TORCH.search(source) is not None
    operators = [*_general(), *_OWN]

    def is_solution(node: cst.CSTNode) -> bool:
        line = places[node].start.line - 1
        return any(first < line < last for first, last in solutions)

    def visit(
        node: cst.CSTNode, around: _Around, in_default: bool
    ) -> Iterator[tuple[str, str, cst.CSTNode, cst.CSTNode]]:
        if isinstance(node, (cst.Annotation, cst.Import, cst.ImportFrom)) or _is_only_words(node):
            return
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            around = _inside(node, around)
        if in_default or is_solution(node):
            for kinds, operator, changed in operators:
                if isinstance(node, kinds):
                    news = changed(node, around)
                    yield from ((around.function, operator, node, new) for new in news)
        if isinstance(node, cst.Raise):
            return  # no check asserts an error's message
        below = replace(around, parent=node)
        in_default = in_default or isinstance(node, cst.Param)
        for child in node.children:
            if not isinstance(node, cst.Param) or child is node.default:
                yield from visit(child, below, in_default)

    begin = _Around(None, "", libraries, (), frozenset(), has_torch, has_torch)
    at = 0
    for statement in module.body:
        code = module.code_for_node(statement)
        at = source.index(code, at)
        for where, operator, old, new in visit(statement, begin, False):
            changed = statement.deep_replace(old, new)
            assert isinstance(changed, cst.CSTNode)
            text = module.code_for_node(changed)
            yield where, operator, source[:at] + text + source[at + len(code) :]
        at += len(code)


def _inside(node: cst.FunctionDef | cst.ClassDef, around: _Around) -> _Around:
    """The surroundings of what is in a function or a class."""
    name = f"{around.function}.{node.name.value}".strip(".")
    if isinstance(node, cst.ClassDef):
        return replace(around, function=name, alike=around.alike + _alike(_attributes(node)))
    kinds = _parameters(node)
    has_numbers_alone = bool(kinds) and {*kinds.values()} <= _NUMBERS
    return replace(
        around,
        function=name,
        alike=around.alike + _alike({name: kind for name, kind in kinds.items() if kind}),
        integers=frozenset(name for name, kind in kinds.items() if kind == "int"),
        has_gradients=around.has_gradients and not (has_numbers_alone and not around.function),
    )


def _parameters(node: cst.FunctionDef) -> dict[str, str]:
    """The annotation of each parameter of a function, "" if it has none."""
    [function] = ast.parse(cst.Module(body=[node]).code).body
    assert isinstance(function, ast.FunctionDef)
    given = [each for each in ast.walk(function.args) if isinstance(each, ast.arg)]
    return {each.arg: ast.unparse(each.annotation) if each.annotation else "" for each in given}


def _attributes(node: cst.ClassDef) -> dict[str, str]:
    """The function that makes each attribute `self.name` of a class."""
    made = {}
    for each in ast.walk(ast.parse(cst.Module(body=[node]).code)):
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call):
            made[ast.unparse(each.targets[0])] = ast.unparse(each.value.func)
    return {name: function for name, function in made.items() if name.startswith("self.")}


def _alike(kinds: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """The names of each kind, which are easy to confuse."""
    by_kind: defaultdict[str, list[str]] = defaultdict(list)
    for name, kind in kinds.items():
        by_kind[kind].append(name)
    return tuple(map(tuple, by_kind.values()))


def _imported(module: cst.Module) -> Iterator[str]:
    """The names that the module imports."""
    for node in ast.walk(ast.parse(module.code)):
        if isinstance(node, ast.Import):
            yield from ((each.asname or each.name).split(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (each.asname or each.name for each in node.names)


def _is_only_words(node: Any) -> bool:
    """Whether a node is a docstring or another string statement."""
    return isinstance(node, cst.Expr) and isinstance(
        node.value, (cst.SimpleString, cst.ConcatenatedString)
    )


# --- our own operators: each yields replacements of a node ---------------------------------------

_Own = Callable[[Any, _Around], Iterator[Any]]
_OWN: list[tuple[Any, str, _Own]] = []  # the kinds of nodes, the operator's name, and its function


def _on(operator: str, *kinds: type) -> Callable[[_Own], _Own]:
    """Add a function to the operators for these kinds of nodes."""

    def added(function: _Own) -> _Own:
        _OWN.append((kinds, operator, function))
        return function

    return added


def _general() -> Iterator[tuple[Any, str, _Own]]:
    """The operators of mutmut in the form of our own."""
    for kind, make in mutation_operators:
        name = make.__name__.removeprefix("operator_")
        yield kind, name, lambda node, around, make=make: make(node)  # type: ignore[misc]


def _called(node: Any) -> str:
    """The last name of the called function: "c" of a.b.c()."""
    func = node.func
    name = getattr(func, "attr", func)
    return str(getattr(name, "value", ""))


def _integer(node: Any) -> int | None:
    """The value of an integer literal, maybe with a minus."""
    if isinstance(node, cst.Integer):
        return node.evaluated_value
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        value = _integer(node.expression)
        return None if value is None else -value
    return None


def _number(value: int) -> Any:
    number = cst.Integer(str(abs(value)))
    return number if value >= 0 else cst.UnaryOperation(cst.Minus(), number)


def _root(node: Any) -> str:
    """The first name of a.b.c, "" if there is none."""
    while hasattr(node, "attr"):
        node = node.value
    return node.value if isinstance(getattr(node, "value", None), str) else ""


def _other_argument(node: Any, index: int, value: Any) -> Any:
    arguments = list(node.args)
    arguments[index] = arguments[index].with_changes(value=value)
    return node.with_changes(args=arguments)


@_on("axis", cst.Call)
def _other_axis(node: Any, around: _Around) -> Iterator[Any]:
    """`x.sum(dim=-1) -> x.sum(dim=0)`"""
    name = _called(node)
    is_method = _root(node.func) not in around.libraries
    for index, argument in enumerate(node.args):
        value = _integer(argument.value)
        if value is None:
            continue
        word = argument.keyword.value if argument.keyword else None
        over_axes = name in _OVER_AXES or name.endswith(_EXTREMES)
        is_axis = over_axes and (is_method or index > 0)
        is_axis = is_axis or (name in _AXES_SECOND and index > 0)
        if word in _AXIS_WORDS or (word is None and is_axis):
            for axis in _other_axes(value):
                yield _other_argument(node, index, _number(axis))


def _other_axes(axis: int) -> Iterator[int]:
    return (other for other in (_AXES if axis >= 0 else _LAST_AXES) if other != axis)


@_on("size", cst.Subscript)
def _other_size(node: Any, around: _Around) -> Iterator[Any]:
    """`x.shape[-1] -> x.shape[-2]`"""
    if not _is_shape(node) or len(node.slice) != 1:
        return
    index = node.slice[0].slice
    value = _integer(index.value) if isinstance(index, cst.Index) else None
    if value is not None:
        for axis in _other_axes(value):
            new = cst.SubscriptElement(cst.Index(_number(axis)))
            yield node.with_changes(slice=[new])


def _is_shape(node: Any) -> bool:
    return isinstance(node.value, cst.Attribute) and node.value.attr.value == "shape"


@_on("unwrap", cst.Call)
def _unwrapped_call(node: Any, around: _Around) -> Iterator[Any]:
    """`x.transpose(1, 2) -> x, sqrt(x) -> x`"""
    if isinstance(around.parent, cst.Expr):
        return  # another operator drops the whole statement
    func = node.func
    is_method = isinstance(func, cst.Attribute) and _root(func) not in around.libraries
    if is_method and not (isinstance(func.value, cst.Name) and func.value.value == "self"):
        yield _bracketed(func.value)
    elif node.args and node.args[0].keyword is None and not node.args[0].star:
        yield _bracketed(node.args[0].value)


@_on("unwrap", cst.Attribute)
def _unwrapped_attribute(node: Any, around: _Around) -> Iterator[Any]:
    """`x.mT -> x`"""
    if node.attr.value in _TURNED:
        yield _bracketed(node.value)
    if node.attr.value == "inf":
        yield cst.Float("1e9")  # large, but finite


@_on("unwrap", cst.Subscript)
def _unwrapped_subscript(node: Any, around: _Around) -> Iterator[Any]:
    """`x[:, None] -> x`"""
    if not _is_shape(node):
        yield _bracketed(node.value)


_WHOLE = (
    *(cst.Name, cst.Call, cst.Attribute, cst.Subscript),
    *(cst.Integer, cst.Float, cst.SimpleString, cst.List),
)


def _bracketed(node: Any) -> Any:
    """The node, in brackets if it needs them."""
    if node.lpar or isinstance(node, _WHOLE):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


@_on("one_side", cst.BinaryOperation, cst.BooleanOperation)
def _one_side(node: Any, around: _Around) -> Iterator[Any]:
    """`x / y -> x`"""
    yield _bracketed(node.left)
    yield _bracketed(node.right)


@_on("compare", cst.ComparisonTarget)
def _other_comparison(node: Any, around: _Around) -> Iterator[Any]:
    """`x == y -> x <= y`; mutmut has `x != y`"""
    others: dict[Any, Any] = {
        cst.Equal: (cst.LessThanEqual, cst.GreaterThanEqual),
        cst.NotEqual: (cst.LessThan, cst.GreaterThan),
        cst.LessThan: (cst.GreaterThan, cst.GreaterThanEqual),
        cst.LessThanEqual: (cst.GreaterThan, cst.GreaterThanEqual),
        cst.GreaterThan: (cst.LessThan, cst.LessThanEqual),
        cst.GreaterThanEqual: (cst.LessThan, cst.LessThanEqual),
    }
    for other in others.get(type(node.operator), ()):
        yield node.with_changes(operator=other())


@_on("twin", cst.Call)
def _twin(node: Any, around: _Around) -> Iterator[Any]:
    """`x.tril() -> x.triu()`"""
    twin = _TWIN.get(_called(node))
    if twin is None:
        return
    name, is_name = cst.Name(twin), isinstance(node.func, cst.Name)
    yield node.with_changes(func=name if is_name else node.func.with_changes(attr=name))


@_on("diagonal", cst.Call)
def _diagonal(node: Any, around: _Around) -> Iterator[Any]:
    """`x.tril() -> x.tril(diagonal=1)`"""
    needed = int(_root(node.func) in around.libraries)
    if _called(node) in _TRIANGLES and len(node.args) == needed:
        for diagonal in (-1, 1):
            new = cst.Arg(_number(diagonal), keyword=cst.Name("diagonal"), equal=_EQUAL)
            yield node.with_changes(args=[*node.args, new])


@_on("detach", cst.Assign, cst.AnnAssign, cst.Return)
def _detached(node: Any, around: _Around) -> Iterator[Any]:
    """`return x -> return x.detach()`"""
    value = node.value
    if around.has_gradients and value is not None and not isinstance(value, cst.Tuple):
        yield node.with_changes(value=_detach(value))


@_on("detach", cst.Arg)
def _detached_argument(node: Any, around: _Around) -> Iterator[Any]:
    """`f(x) -> f(x.detach())`"""
    value = node.value
    is_name = isinstance(value, cst.Name) and value.value not in ("True", "False", "None")
    if around.has_gradients and is_name and not node.star:
        yield node.with_changes(value=_detach(value))


@_on("detach", cst.Tuple)
def _detached_element(node: Any, around: _Around) -> Iterator[Any]:
    """`return x, y -> return x.detach(), y`"""
    if around.has_gradients and isinstance(around.parent, cst.Return):
        for index, element in enumerate(node.elements):
            elements = list(node.elements)
            elements[index] = element.with_changes(value=_detach(element.value))
            yield node.with_changes(elements=elements)


def _detach(value: Any) -> Any:
    return cst.Call(cst.Attribute(_bracketed(value), cst.Name("detach")))


@_on("in_place", cst.Call)
def _in_place(node: Any, around: _Around) -> Iterator[Any]:
    """`x.add(1) -> x.add_(1)`"""
    name = _called(node)
    is_method = isinstance(node.func, cst.Attribute) and _root(node.func) not in around.libraries
    if is_method and around.has_torch and name in _IN_PLACE:
        yield node.with_changes(func=node.func.with_changes(attr=cst.Name(f"{name}_")))


@_on("swap", cst.Call)
def _swapped_arguments(node: Any, around: _Around) -> Iterator[Any]:
    """`x.view(a, b) -> x.view(b, a)`"""
    if _called(node) in _SYMMETRIC:
        return
    for index in range(len(node.args) - 1):
        one, other = node.args[index : index + 2]
        if one.keyword is None and other.keyword is None and not one.star and not other.star:
            yield node.with_changes(args=_with_swapped(node.args, index))


def _with_swapped(parts: Sequence[Any], index: int) -> list[Any]:
    """The arguments or elements with the values of two neighbours swapped."""
    one, other = parts[index : index + 2]
    swapped = one.with_changes(value=other.value), other.with_changes(value=one.value)
    return [*parts[:index], *swapped, *parts[index + 2 :]]


@_on("elements", cst.Tuple, cst.List)
def _elements(node: Any, around: _Around) -> Iterator[Any]:
    """`return x, y -> return y, x`; `for x in (y, z) -> for x in (y,)`"""
    if len(node.elements) < 2:
        return
    if isinstance(around.parent, (cst.Return, cst.Assign, cst.AssignTarget)):
        for index in range(len(node.elements) - 1):
            yield node.with_changes(elements=_with_swapped(node.elements, index))
    else:
        for index in range(len(node.elements)):
            left = [element for number, element in enumerate(node.elements) if number != index]
            if len(left) == 1 and isinstance(node, cst.Tuple):
                left = [left[0].with_changes(comma=cst.Comma())]
            yield node.with_changes(elements=left)


@_on("condition", cst.If, cst.While, cst.IfExp, cst.CompIf)
def _condition(node: Any, around: _Around) -> Iterator[Any]:
    """`if x -> if True, if False`"""
    for value in ("True", "False"):
        yield node.with_changes(test=cst.Name(value))


@_on("loop", cst.For)
def _no_loop(node: Any, around: _Around) -> Iterator[Any]:
    """`for x in y -> for x in ()`"""
    yield node.with_changes(iter=cst.Tuple([]))


@_on("bound", cst.Slice)
def _bound(node: Any, around: _Around) -> Iterator[Any]:
    """`x[:n] -> x[:], x[:n - 1], x[:n + 1]`"""
    for side in ("lower", "upper", "step"):
        value = getattr(node, side)
        if value is not None:
            yield node.with_changes(**{side: None})
            for other in _off_by_one(value):
                yield node.with_changes(**{side: other})


@_on("bound", cst.Call)
def _count(node: Any, around: _Around) -> Iterator[Any]:
    """`range(n) -> range(n - 1), range(n + 1)`; `f(n) -> f(n - 1), f(n + 1)` for an integer n"""
    is_count = _called(node) in _COUNTS
    for index, argument in enumerate(node.args):
        value = argument.value
        is_integer = isinstance(value, cst.Name) and value.value in around.integers
        if is_integer or (is_count and argument.keyword is None):
            for other in _off_by_one(value):
                yield _other_argument(node, index, other)


def _off_by_one(value: Any) -> Iterator[Any]:
    left = value if isinstance(value, cst.BinaryOperation) else _bracketed(value)
    for operator in (cst.Subtract(), cst.Add()):
        yield cst.BinaryOperation(left, operator, cst.Integer("1"))


@_on("number", cst.Integer)
def _one_less(node: Any, around: _Around) -> Iterator[Any]:
    """`2 -> 1`; mutmut has 3"""
    if isinstance(node, cst.Integer) and node.evaluated_value > 0:
        yield _number(node.evaluated_value - 1)


@_on("default", cst.Name)
def _none_default(node: Any, around: _Around) -> Iterator[Any]:
    """`def f(x=None) -> def f(x=...)`"""
    if isinstance(around.parent, cst.Param) and node.value == "None":
        yield cst.Ellipsis()


@_on("sibling", cst.Name)
def _sibling_name(node: Any, around: _Around) -> Iterator[Any]:
    """`f(x) -> f(y)`, where x and y are parameters of one type"""
    parent = around.parent
    is_value = isinstance(parent, cst.Attribute) and parent.value is node
    if isinstance(parent, (cst.Attribute, cst.AssignTarget)) and not is_value:
        return
    if isinstance(parent, cst.Arg) and parent.keyword is node:
        return
    yield from map(cst.Name, _siblings(node.value, around))


@_on("sibling", cst.Attribute)
def _sibling_attribute(node: Any, around: _Around) -> Iterator[Any]:
    """`self.x -> self.y`, where one function made both"""
    if isinstance(around.parent, cst.AssignTarget):
        return
    if not (isinstance(node.value, cst.Name) and node.value.value == "self"):
        return
    for name in _siblings(f"self.{node.attr.value}", around):
        yield node.with_changes(attr=cst.Name(name.removeprefix("self.")))


def _siblings(name: str, around: _Around) -> Iterator[str]:
    """The names that are easy to confuse with this one."""
    return (other for names in around.alike if name in names for other in names if other != name)


@_on("error", cst.Raise)
def _other_error(node: Any, around: _Around) -> Iterator[Any]:
    """`raise ValueError(x) -> raise RuntimeError(x)`"""
    if isinstance(node.exc, cst.Call):
        yield node.with_changes(exc=node.exc.with_changes(func=cst.Name("RuntimeError")))


@_on("drop", cst.SimpleStatementLine)
def _dropped(node: Any, around: _Around) -> Iterator[Any]:
    """`x = y -> pass`"""
    kept = (cst.Pass, cst.Raise, cst.Import, cst.ImportFrom)  # "condition" already drops a raise
    if not isinstance(node.body[0], kept) and not _is_only_words(node.body[0]):
        yield node.with_changes(body=[cst.Pass()])


@_on("condition", cst.CompFor)
def _no_filter(node: Any, around: _Around) -> Iterator[Any]:
    """`[x for x in y if z] -> [x for x in y]`"""
    if node.ifs:
        yield node.with_changes(ifs=[])
