"""A worked example of a function, with numbers that one can follow, for its docstring."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from grader.authoring.suggest.behaviour import Find, outcome
from grader.authoring.suggest.inputs import written
from grader.authoring.suggest.types import Call, Example

_SIDE = 2  # the longest axis of an array in an example
_FEW = 6  # numbers of an array that are written out
_LINES = 12  # of a result
_PLAIN = {0.0, 1.0}  # numbers that say little


def examples(calls: Sequence[Call], right: Find) -> Iterator[Example]:
    """One example for each function: the shortest that shows different numbers."""
    found: dict[str, list[Example]] = {}
    for call in calls:
        made = (_example(given, right) for given in _sizes(call, right))
        found.setdefault(call.entry, []).extend(each for each in made if each is not None)
    for own in found.values():
        if own:
            yield min(own, key=lambda each: (-_telling(each), sum(map(len, each.lines))))


def _telling(example: Example) -> int:
    """How much the result tells: 2 with several numbers, 1 with one, 0 if one need not compute."""
    (at,) = (n for n, line in enumerate(example.lines) if f" {example.entry}(" in line)
    given, got = (_numbers(lines) for lines in (example.lines[:at], example.lines[at + 1 :]))
    several = len(set(got)) > 1
    return (1 + several) * (bool(set(got) - _PLAIN - set(given)) and several >= (len(got) > 1))


def _numbers(lines: Sequence[str]) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.?\d*", " ".join(lines))]


def _sizes(call: Call, right: Find) -> Iterator[Call]:
    """The same call with short axes and numbers in order, if these sizes fit, and the call."""
    small = Call(call.entry, {name: _shortened(value) for name, value in call.given.items()})
    wanted, given = outcome(right, call), outcome(right, small)
    sides = [min(side, _SIDE) for side in getattr(wanted and wanted.value, "shape", ())]
    if list(getattr(given and given.value, "shape", ())) == sides:
        yield small
    yield call


def _shortened(value: Any) -> Any:
    if not hasattr(value, "dtype") or not value.shape:
        return value
    short = value[tuple(slice(_SIDE) for _ in value.shape)]
    if "float" not in str(value.dtype):
        return short
    count = _count(short)
    if count <= _FEW:
        return short.round(decimals=1)
    library = importlib.import_module("torch" if hasattr(short, "numpy") else "numpy")
    return library.arange(float(count)).reshape(short.shape)


def _count(array: Any) -> int:
    return int(array.numel() if hasattr(array, "numel") else array.size)


def _example(call: Call, right: Find) -> Example | None:
    found = outcome(right, call)
    if found is None or found.error:
        return None
    lines = []
    for name, value in call.given.items():
        if hasattr(value, "dtype"):
            code = _code(value)
            if not code:
                return None
            lines.append(f">>> {name} = {code}")
    part, shown = _shown(found.value)
    if len(shown) > _LINES or "" in shown:  # where a doctest would end
        return None
    return Example(call.entry, (*lines, f">>> {written(call)}{part}", *shown))


def _code(array: Any) -> str:
    """Code for an array, "" if it takes too many numbers."""
    is_torch = hasattr(array, "numpy")
    library = "torch" if is_torch else "np"
    count = _count(array)
    if "float" in str(array.dtype) and array.flatten().tolist() == list(range(count)):
        sizes = ", ".join(map(str, array.shape))
        reshaped = f".reshape({sizes})" if array.ndim > 1 else ""
        return f"{library}.arange({float(count)}){reshaped}"
    if count > 2 * _FEW:
        return ""
    make = "torch.tensor" if is_torch else "np.array"
    return f"{make}({_rounded(array.tolist())})"


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return round(value, 4) + 0.0 if isinstance(value, float) else value  # no -0.0


def _shown(value: Any) -> tuple[str, list[str]]:
    """The code for a part of a result, and its lines: of an array the last matrix."""
    if hasattr(value, "detach"):
        value = value.detach()
    leading = (-1,) * (getattr(value, "ndim", 0) - 2)
    part = f"[{', '.join(map(str, leading))}]" if leading else ""
    return part, repr(value[leading] if leading else value).split("\n")
