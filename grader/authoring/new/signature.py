"""Reads what the author types after --function and --class: a signature, with the axes of arrays.

    alibi_slopes(num_heads: int) -> "H"
    Block(d_model, eps=1e-5)(x: "B T D") -> "B T D"

Text in place of a type names the axes of an array. A parameter without a type is a number if its
default or its name says so, else an array. Pure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from keyword import iskeyword

from grader.types.errors import KitError

PLAIN = ("int", "float", "bool", "str")
_COUNT = re.compile(
    r"(n|num|max|min)_\w+|d_\w+|\w+_(len|size|dim|count)|n|dim|axis|size|length|offset"
)
_ARRAYS = ("Tensor", "ndarray")
_AS_IN_COURSE_TOML = {"any": "Any", "number": "float", "tensor": "Tensor", "array": "ndarray"}
_AXIS = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True)
class Value:
    """A parameter or a result: an array with these `axes`, or what the annotation `type` says.

    An array's `axes` are None if the author named none; `default` is Python code, "" if there is
    none.
    """

    name: str
    type: str = ""
    axes: tuple[str, ...] | None = None
    default: str = ""

    @property
    def is_array(self) -> bool:
        """Whether it is an array, as far as is known."""
        return not self.type


@dataclass(frozen=True)
class Function:
    """A function: its parameters and its results, several if it `is_tuple`."""

    name: str
    parameters: tuple[Value, ...]
    results: tuple[Value, ...]
    is_tuple: bool = False

    @property
    def arrays(self) -> tuple[Value, ...]:
        """The parameters that must be given and are arrays."""
        return tuple(each for each in self.needed if each.is_array)

    @property
    def needed(self) -> tuple[Value, ...]:
        """The parameters without a default."""
        return tuple(each for each in self.parameters if not each.default)


@dataclass(frozen=True)
class Entry:
    """What learners write: a function, or a class whose objects are called as `call` says.

    A class's `made` has the parameters of its constructor.
    """

    call: Function
    made: Function | None = None

    @property
    def name(self) -> str:
        """The entry point's name."""
        return (self.made or self.call).name


def read_function(text: str, has_arrays: bool = True) -> Entry:
    """The function of a signature such as 'f(x: "B T", n=2) -> "B T"'. Raises KitError."""
    return Entry(_Reader(text, has_arrays).function(text))


def read_class(text: str, has_arrays: bool = True) -> Entry:
    """The class of 'Block(d_model)(x: "B T D") -> "B T D"'. Raises KitError."""
    end = _closing(text)
    made, call = text[: end + 1], text[end + 1 :].strip()
    if end < 0 or not call.startswith("("):
        raise KitError(
            f"--class '{text}': say also how its objects are called: "
            "--class 'Block(d_model)(x: \"B T D\")'"
        )
    reader = _Reader(text, has_arrays)
    return Entry(reader.function(f"forward{call}"), reader.function(made))


def _closing(text: str) -> int:
    """The place of the bracket that closes the first one, -1 if there is none."""
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == ")" and not depth:
            return place
    return -1


@dataclass(frozen=True)
class _Reader:
    """Reads a signature; its errors quote the `whole` of what was typed."""

    whole: str
    has_arrays: bool

    def function(self, text: str) -> Function:
        """The function of a signature. Raises KitError."""
        try:
            (node,) = ast.parse(f"def {text}: ...").body
        except (SyntaxError, ValueError):
            raise self._fault("is not a signature") from None
        if not isinstance(node, ast.FunctionDef):
            raise self._fault("is not a signature")
        given = node.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs:
            raise self._fault("has parameters with * or /: write plain ones")
        missing = len(given.args) - len(given.defaults)
        defaults = [*[""] * missing, *map(ast.unparse, given.defaults)]
        parameters = tuple(map(self._parameter, given.args, defaults))
        returns = node.returns
        is_tuple = isinstance(returns, ast.Tuple)
        each = returns.elts if isinstance(returns, ast.Tuple) else [returns]
        names = [f"result {at}" if is_tuple else "result" for at in range(1, 1 + len(each))]
        results = tuple(map(self._value, names, each))
        return Function(node.name, parameters, results, is_tuple)

    def _parameter(self, arg: ast.arg, default: str) -> Value:
        value = self._value(arg.arg, arg.annotation)
        if arg.annotation is not None:
            return replace(value, default=default)
        kind = _plain_type(default) if default else "int" if _COUNT.fullmatch(arg.arg) else ""
        return Value(arg.arg, kind or value.type, None, default)

    def _value(self, name: str, annotation: ast.expr | None) -> Value:
        if annotation is None:
            return Value(name) if self.has_arrays else Value(name, "Any")
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            if not self.has_arrays:
                raise self._fault("names axes, but this course has neither torch nor numpy")
            axes = tuple(annotation.value.split())
            for axis in axes:
                if not _AXIS.fullmatch(axis) or iskeyword(axis):
                    raise self._fault(f"has an axis '{axis}', which is not a name")
            return Value(name, axes=axes)
        code = ast.unparse(annotation)
        code = _AS_IN_COURSE_TOML.get(code, code)
        return Value(name) if self.has_arrays and code.endswith(_ARRAYS) else Value(name, code)

    def _fault(self, what: str) -> KitError:
        example = 'f(x: "B T", n: int) -> "B T"'
        example = example if self.has_arrays else "f(x: list[int], n: int) -> float"
        return KitError(f"'{self.whole}' {what}: write it like '{example}'")


def _plain_type(code: str) -> str:
    """The name of a literal's type; "" if the code is no literal, or its value is not plain."""
    try:
        name = type(ast.literal_eval(code)).__name__
    except (SyntaxError, ValueError):
        return ""
    return name if name in PLAIN else ""


def axes_of(values: tuple[Value, ...]) -> Iterator[str]:
    """The names of all axes of these values, each once, in order."""
    yield from dict.fromkeys(axis for each in values for axis in each.axes or ())
