"""Describes values, and calls with them, in messages to the learner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from grader.run.worker.wire import Handle, Opaque
from grader.types.text import safe

_FEW = 8  # a tensor of at most this many short numbers is shown by its values
_SHORT = 5  # characters of a number


class RemoteObject:
    """An object in the worker that may be an argument; `made` names it in messages."""

    def __init__(self, handle: Handle, made: str) -> None:
        self.handle = handle
        self.made = made


def described(value: Any) -> str:
    """A value in a few words."""
    if value is None:
        return "None"
    if isinstance(value, Opaque):
        return safe(value.type_name) + (f" ({safe(value.why)})" if value.why else "")
    if isinstance(value, Handle):
        return f"a module of class {safe(value.type_name)}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    shape = getattr(value, "shape", None)
    if shape is not None:
        library = type(value).__module__.split(".")[0]
        name = "a torch.Tensor" if library == "torch" else "a numpy array"
        return f"{name} of shape {list(shape)}"
    return f"{type(value).__name__} {safe(repr(value)[:60])}"


def arguments(args: Iterable[Any], kwargs: Mapping[str, Any]) -> str:
    """The arguments of a call, readable for a learner: tensors by their axes."""
    positional = [_argument(value) for value in args]
    return ", ".join(positional + [f"{name}={_argument(value)}" for name, value in kwargs.items()])


def _argument(value: Any) -> str:
    if isinstance(value, RemoteObject):
        return value.made
    shape = getattr(value, "shape", None)
    if shape is None:
        return repr(value) if isinstance(value, (int, float, str, type(None))) else described(value)
    dtype = str(value.dtype).removeprefix("torch.")
    kind = "" if dtype in ("float32", "bool") else f" {dtype}"
    values = _literal(value) if math.prod(shape) <= _FEW else ""
    if values:
        return values + kind
    axes = getattr(value, "axes", ())
    if len(axes) == len(shape):
        sizes = ", ".join(f"{axis}={size}" for axis, size in zip(axes, shape, strict=True))
    else:
        sizes = " x ".join(str(size) for size in shape) + " numbers" * (len(shape) == 1)
    return f"[{sizes}]{' bool' if dtype == 'bool' else kind}"


def _literal(array: Any) -> str:
    """The values of an array as nested lists, "" if they are not short numbers."""

    def told(value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(told, value))}]"
        return f"{value + 0.0:.6g}" if isinstance(value, float) else str(value)  # no -0

    text = told(array.tolist())
    numbers = text.replace("[", "").replace("]", "").split(", ")
    return text if all(len(number) <= _SHORT for number in numbers) else ""
