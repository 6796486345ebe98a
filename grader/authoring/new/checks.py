"""The check file of a new stage: checks of each entry point, as its signature suggests. Pure.

Each check has one thing in view and says so in its name. The author completes, for each entry
point, the inputs and the right answer, and every check uses them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle

from grader import checking
from grader.authoring.new.signature import Entry, Value, axes_of
from grader.authoring.new.style import Style
from grader.types.text import listed

_SIZES = ((2, 3, 4, 5, 6, 7), (3, 5, 2, 7, 4, 6))  # no two alike, so that no mistake fits by chance
_COUNTS = ((4, 2, 3, 5), (6, 3, 2, 5))  # for parameters such as d_model and num_heads
_WIDEST = 100
# What stands for a parameter of each type: two ordinary values, and an edge.
_SAMPLES = {
    "int": ("3", "5", "1"),
    "float": ("1.5", "4.0", "-3.0"),
    "bool": ("True", "False", "True"),
    "str": ('"abca"', '"ba"', '""'),
    "list": ("[3, 1, 2]", "[2, 2]", "[]"),
    "dict": ('{"a": 3, "b": 1}', '{"a": 2}', "{}"),
    "set": ("{3, 1}", "{2}", "set()"),
    "tuple": ("(1, 2)", "(3, 1)", "()"),
}


def check_file(slug: str, entries: Sequence[Entry], style: Style) -> str:
    """The check file of the stage `slug`."""
    parts = [_Checks(entry, style, len(entries) > 1) for entry in entries]
    body = "\n\n\n".join(block for part in parts for block in part.blocks())
    names = [name for name in checking.__all__ if re.search(rf"(: {name}|\b{name}\()", body)]
    imports = f"from grader.checking import {', '.join(names)}"
    if len(imports) > _WIDEST:
        imports = "from grader.checking import (\n    " + ",\n    ".join(names) + ",\n)"
    gap = "\n\n" if body.startswith("def ") else "\n"
    head = ["from typing import Any", "", "import pytest"]
    head += ["import torch"] if "torch." in body else []
    head += ["import numpy as np"] if "np." in body else []
    return (
        f'"""The hidden checks of {slug}."""\n\nfrom __future__ import annotations\n\n'
        + "\n".join(head)
        + f"\n\n{imports}\n{gap}{body}\n"
    )


def visible_checks(entries: Sequence[Entry], style: Style) -> Iterator[str]:
    """The names of the checks that students may see: those without the right answer."""
    for entry in entries:
        check = "shape" if style.has_arrays else "edges"
        if not style.has_arrays or all(each.is_array for each in entry.call.results):
            yield f"{entry.name}_{check}" if len(entries) > 1 else check


class _Checks:
    """Writes the checks of one entry point."""

    def __init__(self, entry: Entry, style: Style, has_siblings: bool) -> None:
        self._entry = entry
        self._style = style
        self._name = entry.name
        self._call = entry.call
        self._prefix = f"{entry.name}_" if has_siblings else ""
        self._shapes = f"{self._prefix.upper()}SHAPES"
        self._made = f"made_{entry.name}" if has_siblings else "made"
        self._has_state = entry.made is not None and style.has_gradients
        self._arrays = entry.call.arrays if style.has_arrays else ()
        self._axes = list(axes_of(entry.call.parameters)) or (["n", "m"] if self._arrays else [])
        # The axes whose sizes may vary; the constructor of a class fixes the last ones.
        last = {(each.axes or self._axes)[-1:][0] for each in self._arrays if entry.made}
        self._free = [axis for axis in self._axes if axis not in last]
        self._returns_array = style.has_arrays and all(each.is_array for each in self._call.results)
        self._needed = ", ".join(each.name for each in self._call.needed)
        self._first = "[0]" if self._call.is_tuple else ""

    def blocks(self) -> Iterator[str]:
        """The functions of the file, in order."""
        yield self._inputs() if self._style.has_arrays else self._cases()
        if self._has_state:
            yield self._module()
        yield self._right()
        for name in self._checks():
            yield self._checks()[name]()

    def _checks(self) -> dict[str, Callable[[], str]]:
        """What writes each check, by its name."""
        if not self._style.has_arrays:
            return {"values": self._plain_values, "edges": self._edges}
        has_gradients = self._style.has_gradients and self._arrays and self._returns_array
        checks = {
            "parameters": self._parameters if self._has_state else None,
            "shape": self._shape if self._returns_array else None,
            "values": self._values,
            "smallest": self._smallest,
            "gradients": self._gradients if has_gradients else None,
            "dtype": self._dtype if has_gradients else None,
            "unchanged": self._unchanged if self._arrays else None,
        }
        return {name: check for name, check in checks.items() if check is not None}

    def _points(self, name: str) -> int:
        """What a check is worth; `values` gets what the others leave of ten points."""
        if name != "values":
            return 3 if name == "edges" else 1
        return 10 - sum(self._points(other) for other in self._checks() if other != name)

    # --- what the checks share ---

    def _inputs(self) -> str:
        """The function that draws the arguments."""
        sizes = [f"{name}: int = {size}" for name, size in self._sizes(0).items()]
        given = ["rand: Rand", *sizes, "**options: Any"] if self._arrays else sizes
        values = []
        for each in self._call.needed:
            if each.is_array:
                axes = self._axes if each.axes is None else each.axes
                values.append(f"rand({', '.join([*_by_axis(axes, axes), '**options'])})")
            else:
                values.append(each.name if each.type == "int" else _sample(each.type, 0))
        several = f"({', '.join(values)}{',' if len(values) == 1 else ''})"
        begin = "Arguments" if self._style.is_done else "TODO: choose arguments"
        optional = [each.name for each in self._call.parameters if each.default]
        end = f"; try {listed(optional)} too" if optional else ", so that no mistake fits by chance"
        return _function(
            f"{self._name}_inputs",
            given,
            f"{begin} of {self._name} whose sizes differ{end}.",
            f"return {several}",
            "tuple[Any, ...]",
        )

    def _cases(self) -> str:
        """The arguments of a function of plain values: two ordinary cases, and an edge."""
        name = self._name.upper()
        rows = []
        for number in range(3):
            values = [_sample(each.type, number) for each in self._call.needed]
            rows.append(f"({', '.join(values)}{',' if len(values) == 1 else ''})")
        todo = "# TODO: arguments that show every mistake; at the edges also the right result\n"
        right = "None"
        if self._style.is_done:
            todo, right = "", "-6.0"
        return f"{todo}{name}_CASES = [{rows[0]}, {rows[1]}]\n{name}_EDGES = [({rows[2]}, {right})]"

    def _module(self) -> str:
        """The shapes of the parameters, and the function that makes a module."""
        return (
            "# TODO: the parameters' shapes by name; linear_shapes lists those of nn.Linear\n"
            f"{self._shapes}: dict[str, tuple[int, ...]] = {{}}\n\n\n"
            f"def {self._made}(submission: Submission, state: dict[str, Any]) -> Any:\n"
            f'    """TODO: fitting sizes. The module with these parameters."""\n'
            f"    return with_state({self._constructed}, state)"
        )

    @property
    def _constructed(self) -> str:
        """The call of a class's constructor."""
        needed = self._entry.made.needed  # type: ignore[union-attr]
        counts = _counts(needed, 0)
        values = [f"{one.name}={counts.get(one.name, _sample(one.type, 0))}" for one in needed]
        return f"submission.{self._name}({', '.join(values)})"

    def _right(self) -> str:
        given = [each.name for each in self._call.needed]
        state = ["state: dict[str, Any]"] if self._has_state else []
        ends = {each.name: f" = {each.default}" for each in self._call.parameters if each.default}
        parameters = [
            f"{each.name}: Any{ends.get(each.name, '')}" for each in self._call.parameters
        ]
        body = f"return {given[0]} + {given[0]}" if self._style.is_done and given else _UNWRITTEN
        todo = "TODO: the right answer, in another style than the solution."
        return _function(f"right_{self._name}", [*state, *parameters], todo, body, "Any")

    # --- the checks ---

    def _parameters(self) -> str:
        lines = [
            f"module = {self._constructed}",
            f"expect_parameters(named_parameters(module), {self._shapes})",
        ]
        return self._written("parameters", lines, "The parameters have the right names and shapes")

    def _shape(self) -> str:
        axes, known = self._result_axes(self._call.results[0]), self._sizes(0)
        sizes = ", ".join(_by_axis(axes, [known.get(axis, 1) for axis in axes]))
        todo = "" if set(axes) <= set(known) else "  # TODO: its sizes for these inputs"
        lines = [
            *self._begin(),
            f"result = {self._called('*inputs')}{self._first}",
            f"expect_shape(result, {sizes}){todo}"
            if axes
            else 'assert not result.shape, "the result is not a single number"',
        ]
        keeps_shape = any(self._result_axes(each) == axes for each in self._arrays[:1])
        constants = '"zeros", "ones"' + (', "input"' if keeps_shape else "")
        mark = f'@pytest.mark.pays({constants}, because="only the shape is checked")'
        return self._written("shape", lines, "The result has the right shape", mark=mark)

    def _values(self) -> str:
        varied = self._sizes(1).items()
        fixed = set(self._axes) - set(self._free)
        sizes = [f'"{name}": {size}' for name, size in varied if name not in fixed]
        mark = f'@pytest.mark.parametrize("sizes", [{{}}, {{{", ".join(sizes)}}}])' if sizes else ""
        more = ["sizes: dict[str, int]"] if sizes else []
        lines = [*self._begin("**sizes" if sizes else ""), self._compared("*inputs")]
        return self._written("values", lines, _TITLE, mark=mark, more=more)

    def _smallest(self) -> str:
        sizes = dict.fromkeys([*self._free, *_counts(self._call.needed, 0)], 1)
        words = ", ".join(f"{name}={size}" for name, size in sizes.items())
        words += ", scale=3.0" if self._arrays else ""  # so that no constant is right by chance
        lines = [*self._begin(words), self._compared("*inputs")]
        return self._written("smallest", lines, "Works for sizes of 1")

    def _gradients(self) -> str:
        names = [each.name for each in self._arrays]
        pairs = [f'"{name}": {name}' for name in names]
        got, right = self._called(self._needed), self._expected(self._needed)
        lines = self._begin("grad=True", self._unpacked)
        if self._has_state:
            lines += [
                f"module = {self._made}(submission, state)",
                "learnt = trained_parameters(module, state)",
            ]
            got, right = f"module({self._needed})", f"right_{self._name}(learnt, {self._needed})"
            names, pairs = [*names, "the parameters"], [*pairs, "**learnt"]
        lines += [
            f"got, right = {got}{self._first}, {right}{self._first}",
            self._comparison("got", "right", first=True),
            f"expect_gradients_close(got, right, {{{', '.join(pairs)}}})",
        ]
        return self._written("gradients", lines, f"Gradients flow back to {listed(names)}")

    def _dtype(self) -> str:
        lines = [
            *self._begin("dtype=dtype"),
            f"result = {self._called('*inputs')}{self._first}",
            "expect_dtype(result, dtype)",
            "expect_device(result, device)",
            self._comparison("result", f"{self._expected('*inputs')}{self._first}", first=True),
        ]
        if self._has_state:
            lines[2:3] = [
                f"result = {self._made}(submission, state).to(dtype)(*inputs){self._first}",
                "state = {name: each.to(dtype) for name, each in state.items()}",
            ]
        title = "Keeps the dtype and the device of its input"
        mark = '@pytest.mark.parametrize("dtype", [torch.float64])'
        more = ["device: torch.device", "dtype: torch.dtype"]
        return self._written("dtype", lines, title, mark=mark, more=more)

    def _unchanged(self) -> str:
        names = [each.name for each in self._arrays]
        watched = ", ".join(f"{name}={name}" for name in names)
        lines = [
            *self._begin("", self._unpacked),
            f"with expect_unchanged({watched}):",
            f"    result = {self._called(self._needed)}",
            self._comparison("result", self._expected(self._needed)),
        ]
        return self._written("unchanged", lines, f"Does not change {listed(names)}")

    def _plain_values(self) -> str:
        mark = f'@pytest.mark.parametrize("inputs", {self._name.upper()}_CASES)'
        lines = [self._same(self._called("*inputs"), f"right_{self._name}(*inputs)")]
        return self._written("values", lines, _TITLE, mark=mark, more=["inputs: tuple[Any, ...]"])

    def _edges(self) -> str:
        mark = f'@pytest.mark.parametrize("inputs, expected", {self._name.upper()}_EDGES)'
        lines = [self._same(self._called("*inputs"), "expected")]
        more = ["inputs: tuple[Any, ...]", "expected: Any"]
        title = "Works at the edges of what is allowed"
        return self._written("edges", lines, title, mark=mark, more=more)

    # --- small pieces of them ---

    def _sizes(self, which: int) -> dict[str, int]:
        """The sizes of the axes and of the integer arguments: the first or the second choice."""
        axes = dict(zip(self._axes, _SIZES[which], strict=False))
        return axes | _counts(self._call.needed, which) | axes

    @property
    def _unpacked(self) -> str:
        return f"{self._needed}{',' if len(self._call.needed) == 1 else ''}"

    def _begin(self, given: str = "", names: str = "inputs") -> list[str]:
        """The lines that draw the parameters, if there are any, and the inputs."""
        arguments = ", ".join(filter(None, ["rand" if self._arrays else "", given]))
        state = [f"state = draw_state(rand, {self._shapes})"] if self._has_state else []
        return [*state, f"{names} = {self._name}_inputs({arguments})"]

    def _called(self, given: str) -> str:
        if self._has_state:
            return f"{self._made}(submission, state)({given})"
        if self._entry.made is not None:
            return f"{self._constructed}({given})"
        return f"submission.{self._name}({given})"

    def _expected(self, given: str) -> str:
        state = "state, " if self._has_state else ""
        return f"right_{self._name}({state}{given})"

    def _compared(self, given: str) -> str:
        return self._comparison(self._called(given), self._expected(given))

    def _comparison(self, got: str, right: str, *, first: bool = False) -> str:
        results = self._call.results
        if not self._returns_array:
            return self._same(got, right)
        if len(results) > 1 and not first:
            names = {f"the {each.name}": " ".join(self._result_axes(each)) for each in results}
            told = ", ".join(f'"{name}": "{axes}"' for name, axes in names.items())
            return f"expect_results({got}, {right}, {{{told}}})"
        return f'expect_close({got}, {right}, axes="{" ".join(self._result_axes(results[0]))}")'

    def _same(self, got: str, right: str) -> str:
        """The line that compares plain values; a right float may be rounded in another way."""
        if [each.type for each in self._call.results] == ["float"]:
            return f'expect_close({got}, {right}, axes="")'
        return f'expect_equal({got}, {right}, "the result")'

    def _result_axes(self, result: Value) -> Sequence[str]:
        return (self._axes or ["n"]) if result.axes is None else result.axes

    def _written(
        self,
        name: str,
        lines: Sequence[str],
        title: str,
        *,
        mark: str = "",
        more: Sequence[str] = (),
    ) -> str:
        """A check with the lines of its body; `more` are its fixtures besides the usual ones."""
        needs_rand = any("rand" in line for line in lines)
        given = ["submission: Submission", *(["rand: Rand"] if needs_rand else []), *more]
        marks = [f"@pytest.mark.points({self._points(name)})", *([mark] if mark else [])]
        function = _function(f"test_{self._prefix}{name}", given, title, lines, "None")
        return "\n".join([*marks, function])


_UNWRITTEN = "raise NotImplementedError"
_TITLE = "TODO: what makes an answer right, in at most 72 characters"


def _function(
    name: str, given: Sequence[str], says: str, body: str | Sequence[str], returns: str
) -> str:
    lines = [body] if isinstance(body, str) else list(body)
    head = f"def {name}({', '.join(given)}) -> {returns}:"
    if len(head) > _WIDEST:
        head = f"def {name}(\n    {', '.join(given)}\n) -> {returns}:"
    return "\n".join([head, f'    """{says}"""', *(f"    {line}" for line in lines)])


def _by_axis(axes: Sequence[str], values: Sequence[object]) -> Iterator[str]:
    """An argument for each axis by its name; the second axis T is T_2."""
    for at, (axis, value) in enumerate(zip(axes, values, strict=True)):
        earlier = axes[:at].count(axis)
        yield f"{axis}_{earlier + 1}={value}" if earlier else f"{axis}={value}"


def _counts(values: Iterable[Value], which: int) -> dict[str, int]:
    """Different sizes for the integers among these values."""
    names = [each.name for each in values if each.type == "int"]
    return dict(zip(names, cycle(_COUNTS[which]), strict=False))


def _sample(kind: str, number: int) -> str:
    """Python code for a value of an annotated type."""
    base, _, inner = kind.partition("[")
    if base == "list" and inner:
        one, other = (_sample(inner.removesuffix("]"), each) for each in (0, 1))
        return (f"[{one}, {other}]", f"[{other}]", "[]")[number]
    return _SAMPLES.get(base, ("None",) * 3)[number]
