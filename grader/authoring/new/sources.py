"""The texts of a new stage's solution, misconceptions and first accepted answer. Pure."""

from __future__ import annotations

import collections.abc
import re
import textwrap
from collections.abc import Iterator, Sequence

from grader.authoring.new.signature import Entry, Function, Value
from grader.authoring.new.style import Style
from grader.types.resources import filled
from grader.types.text import listed

_WIDEST = 100
_TEXT = 76
_INDENT = "    "


def solution_text(title: str, entries: Sequence[Entry], style: Style) -> str:
    """The solution, to be written yet; if it `is_done`, it doubles its input."""
    imports = [style.imports] if style.imports else []
    generic = _generic(entries)
    if generic:
        gap = "\n" if imports else ""
        imports.insert(0, f"from collections.abc import {', '.join(generic)}\n{gap}")
    if style.has_gradients and any(entry.made for entry in entries):
        imports.append("from torch import nn\n")
    summary = title.replace("\\", "\\\\").replace('"', '\\"').rstrip(".")
    head = f'"""{summary}.\n\nTODO: what this stage is about, and why it matters.\n"""\n'
    parts = ["".join(imports)] if imports else []
    blocks = ["\n".join(_entry(entry, style)) for entry in entries]
    return "\n".join([head, *parts, "", "\n\n\n".join(blocks)]) + "\n"


def _generic(entries: Sequence[Entry]) -> list[str]:
    """The names of collections.abc, such as Iterator, in the annotations."""
    functions = [f for entry in entries for f in (entry.made, entry.call) if f is not None]
    values = [value for f in functions for value in (*f.parameters, *f.results)]
    words = {word for value in values for word in re.findall(r"\w+", value.type)}
    return sorted(words & set(collections.abc.__all__))


def _entry(entry: Entry, style: Style) -> Iterator[str]:
    if entry.made is None:
        yield from _function(entry.call, style)
        return
    yield f"class {entry.name}({style.base}):" if style.base else f"class {entry.name}:"
    yield f'{_INDENT}"""TODO: what it is and does, in a line."""'
    start = ["super().__init__()"] if style.base else []
    for function, name, begin in ((entry.made, "__init__", start), (entry.call, style.call, [])):
        yield ""
        lines = _function(function, style, name=name, begin=begin)
        yield from (f"{_INDENT}{line}".rstrip() for line in lines)


def _function(
    function: Function, style: Style, *, name: str = "", begin: Sequence[str] = ()
) -> Iterator[str]:
    is_new = name == "__init__"
    given = ["self"] if name else []
    given += [_parameter(each, style) for each in function.parameters]
    returned = "None" if is_new else _returned(function, style)
    yield from _head(name or function.name, given, returned)
    body = [*_docstring(function, style, is_new), "### BEGIN SOLUTION", *begin]
    body += [
        "# TODO: your own solution",
        "return 2 * x" if style.is_done else "raise NotImplementedError",
    ]
    yield from (f"{_INDENT}{line}".rstrip() for line in [*body, "### END SOLUTION"])


def _head(name: str, given: Sequence[str], returned: str) -> Iterator[str]:
    arrow = f" -> {returned}" if returned else ""
    line = f"def {name}({', '.join(given)}){arrow}:"
    if len(line) <= _WIDEST - len(_INDENT):
        yield line
    else:
        yield from (f"def {name}(", *(f"{_INDENT}{each}," for each in given), f"){arrow}:")


def _docstring(function: Function, style: Style, is_new: bool) -> Iterator[str]:
    what = "Twice the input." if style.is_done else "TODO: what it does, in a line."
    yield f'"""{what}'
    yield ""
    if not is_new and style.has_arrays:
        told = ", ".join(map(_told, function.needed))
        yield f"{_INDENT}{told}  ->  {', '.join(map(_told, function.results))}"
        yield ""
    if style.is_done:
        example = f"{style.make}([[1.0, 2.0]])" if style.make else "1.5"
        tail = ".tolist()" if style.make else ""
        yield f">>> {function.name}({example}){tail}"
        yield "[[2.0, 4.0]]" if style.make else "3.0"
        yield ""
    promises = [] if is_new else list(_promises(function, style))
    if promises:
        yield from textwrap.wrap(" ".join(promises), _TEXT)
        yield ""
    yield "TODO: the inputs and the result, with an example, the traps, and the errors it raises."
    yield '"""'


def _promises(function: Function, style: Style) -> Iterator[str]:
    """What the checks ask beyond the values."""
    names = [each.name for each in function.arrays]
    if names and style.has_gradients and function.results[0].is_array:
        yield f"The result has the dtype and device of {names[0]}."
        parameters = ["the parameters"] if function.name == style.call else []
        yield f"Gradients flow back to {listed([*names, *parameters])}."
    if names:
        yield f"No call changes {listed(names)}."


def _told(value: Value) -> str:
    """A value with its shape: "x (B, T)"."""
    if not value.is_array:
        return value.name
    axes = ("...",) if value.axes is None else value.axes
    return f"{value.name} ({', '.join(axes)})"


def _parameter(value: Value, style: Style) -> str:
    kind = style.type if value.is_array else value.type
    note = "" if kind == "Any" else f": {kind}"
    equals = " = " if note else "="
    return f"{value.name}{note}{equals}{value.default}" if value.default else value.name + note


def _returned(function: Function, style: Style) -> str:
    kinds = [style.type if each.is_array else each.type for each in function.results]
    if "Any" in kinds:
        return ""
    return f"tuple[{', '.join(kinds)}]" if function.is_tuple else kinds[0]


def accepted_text(entries: Sequence[Entry], style: Style) -> str:
    """A right answer in another style than the solution's, to be written yet."""
    lines = ['"""TODO: a right answer in another style, and more such files."""']
    if style.base and any(entry.made for entry in entries):
        lines += ["", "from torch import nn"]
    for entry in entries:
        lines += ["", ""]
        if entry.made is None:
            lines += _bare(entry.call, entry.name, "return x + x" if style.is_done else "")
            continue
        lines += [f"class {entry.name}({style.base}):" if style.base else f"class {entry.name}:"]
        lines += [f"{_INDENT}{line}" for line in _bare(entry.made, "__init__")]
        lines += ["", *(f"{_INDENT}{line}" for line in _bare(entry.call, style.call))]
    return "\n".join(lines) + "\n"


def _bare(function: Function, name: str, body: str = "") -> list[str]:
    given = ["self"] if name.startswith("__") or name == "forward" else []
    given += [
        f"{each.name}={each.default}" if each.default else each.name for each in function.parameters
    ]
    return [f"def {name}({', '.join(given)}):", f"{_INDENT}{body or 'raise NotImplementedError'}"]


def misconceptions_text(slug: str, style: Style) -> str:
    """The misconceptions: of twice the input if it `is_done`, else none yet."""
    if not style.is_done:
        return filled(__package__, "templates/misconceptions.txt", slug=slug)
    family = "arrays" if style.has_arrays else "numbers"
    words = {"slug": slug, "imports": style.imports, "type": style.type}
    return filled(__package__, f"templates/{family}_misconceptions.txt", **words)
