"""Describes values, and calls with them, in messages to the learner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from grader.run.worker.packing import Handle, Iterated, Opaque, PlainObject
from grader.types.text import safe, safe_line

_FEW = 8  # a tensor of at most this many short numbers is shown by its values
_SHORT = 5  # characters of a number
_CONTAINERS = {tuple: "tuple", list: "list", dict: "dictionary", set: "set", frozenset: "set"}
_LONG = 60  # characters of a value; of a longer one only the beginning or the size is shown


class RemoteObject:
    """An object in the worker that may be an argument; `made` names it in messages."""

    def __init__(self, handle: Handle, made: str) -> None:
        self.handle = handle
        self.made = made


def handle_of(value: Any) -> Handle | None:
    """The handle of an object in the worker, None for any other value."""
    return value.handle if isinstance(value, RemoteObject) else None


def described(value: Any) -> str:
    """A value in a few words."""
    if value is None:
        return "None"
    if isinstance(value, (Iterated, Opaque)):
        article = "an" if value.type_name[:1].lower() in "aeiou" else "a"
        if isinstance(value, Iterated):
            return f"{article} {safe_line(value.type_name)} of {len(value)}"
        why = f" ({safe(value.why)})" if value.why else ""
        return f"{article} {safe_line(value.type_name)}{why}"
    if isinstance(value, Handle):
        return f"a module of class {safe_line(value.type_name)}"
    if isinstance(value, PlainObject):
        return f"an object of class {safe_line(value._type_name)}"
    for kind, name in _CONTAINERS.items():
        if isinstance(value, kind):
            return f"a {name} of {len(value)}"
    shape = getattr(value, "shape", None)
    if shape is not None:
        library = type(value).__module__.split(".")[0]
        name = "a torch.Tensor" if library == "torch" else "a numpy array"
        return f"{name} of shape {list(shape)}"
    shown = repr(value)
    cut = shown if len(shown) <= _LONG else f"{shown[: _LONG - 3]}..."
    return f"{type(value).__name__} {safe(cut)}"


def arguments(args: Iterable[Any], kwargs: Mapping[str, Any]) -> str:
    """The arguments of a call, readable for a learner: tensors by their axes."""
    positional = [_argument(value) for value in args]
    return ", ".join(positional + [f"{name}={_argument(value)}" for name, value in kwargs.items()])


def _argument(value: Any) -> str:
    if isinstance(value, RemoteObject):
        return value.made
    shape = getattr(value, "shape", None)
    if shape is None:
        text = _written(value)
        if len(text) <= _LONG:
            return text
        return f"{text[:_LONG]}..." if isinstance(value, (str, bytes)) else _begun(value)
    dtype = str(value.dtype).removeprefix("torch.")
    usual = "float32" if hasattr(value, "requires_grad") else "float64"
    kind = "" if dtype in (usual, "bool") else f" {dtype}"
    values = _literal(value) if math.prod(shape) <= _FEW else ""
    if values:
        return values + kind
    axes = getattr(value, "axes", ())
    return shaped(shape, dtype, axes, usual)


def shaped(
    shape: Sequence[int], dtype: str, axes: Sequence[str] = (), usual: str = "float32"
) -> str:
    """An array by its axes if they have names, or by its sizes, and by an unusual dtype."""
    if len(axes) == len(shape):
        sizes = ", ".join(f"{axis}={size}" for axis, size in zip(axes, shape, strict=True))
    else:
        sizes = " x ".join(str(size) for size in shape) + " numbers" * (len(shape) == 1)
    return f"[{sizes}]{'' if dtype == usual else f' {dtype}'}"


def _written(value: Any) -> str:
    """A value that is no array as code, with arrays in it by their axes."""
    kind = _kind(value)
    if isinstance(value, PlainObject):
        told = ", ".join(f"{name}={_argument(each)}" for name, each in vars(value).items())
        return safe(f"{value._type_name}({told})")
    if kind not in _BRACKETS or not value:
        return safe(repr(value))
    before, behind = _BRACKETS[kind]
    parts = _parts(value)
    if isinstance(value, tuple) and len(parts) == 1:
        behind = ",)"
    return f"{before}{', '.join(parts)}{behind}"


def _begun(value: Any) -> str:
    """The first entries of a long value as code, and how many follow; its kind if there is none."""
    kind = _kind(value)
    parts = _parts(value) if kind in _BRACKETS else []
    ends = accumulate(len(part) + 2 for part in parts)
    few = sum(end <= _LONG - len(", ... 9999 more") for end in ends)
    if not few:
        return described(value)
    before, behind = _BRACKETS[kind]
    return f"{before}{', '.join(parts[:few])}, ... {len(parts) - few} more{behind}"


def _kind(value: Any) -> type:
    return dict if isinstance(value, dict) else type(value)


def _parts(value: Any) -> list[str]:
    """The entries of a container as code."""
    if isinstance(value, dict):
        return [f"{_argument(key)}: {_argument(each)}" for key, each in value.items()]
    parts = [_argument(each) for each in value]
    return sorted(parts) if isinstance(value, (set, frozenset)) else parts


_BRACKETS: Mapping[type, Sequence[str]] = {
    list: "[]",
    tuple: "()",
    dict: "{}",
    set: "{}",
    frozenset: ("frozenset({", "})"),
}


def _literal(array: Any) -> str:
    """The values of an array as nested lists, "" if they are not short numbers."""

    def told(value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(told, value))}]"
        return f"{value + 0.0:.6g}" if isinstance(value, float) else str(value)  # no -0

    text = told(array.tolist())
    numbers = text.replace("[", "").replace("]", "").split(", ")
    return text if all(len(number) <= _SHORT for number in numbers) else ""
