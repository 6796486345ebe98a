"""Reads the replies of an implementation, and compares two as values: are they the same?"""

from __future__ import annotations

import cmath
import re
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from grader.checking.comparing import wide
from grader.diagnosis.comparison.starts import start_alike, start_of
from grader.run.worker.packing import Handle, Opaque, PlainObject, Unpacker
from grader.run.worker.wire import Frame, WireError

# Relative and absolute tolerance between two computations of the same numbers, by dtype.
_ROOM = {"float64": (1e-7, 1e-9), "float32": (1e-3, 1e-5)}
_HALF_ROOM = (3e-2, 3e-2)
_MODERATE = 100  # numbers up to this size are ordinary
# What an exception's message says beside the mistake: whose method it is, what was read of None,
# the name of the class that state does not fit, and on which axis an index is too large.
_BESIDE = re.compile(
    r"\b\w+\.(?=\w+\(\))|(?<='NoneType' object has no attribute ).*"
    r"|(?<=in loading state_dict for )\w+|(?<=is out of bounds) for dimension \d+"
)
# Which of two tensors is a depends on the style: x.masked_fill(...) or x.masked_fill_(...).
_TWO_SIZES = re.compile(r"(?<=The size of tensor a )\((\d+)\)(.*?)\((\d+)\)")
_LONGEST = 600  # characters of a message to look at


@dataclass(frozen=True)
class Read:
    """An unpacked reply: an error, or a value, the changed arguments and what requires grad.

    `size` is how many bytes its arrays take.
    """

    error: dict[str, Any] | None = None
    value: Any = None
    changed: Any = None
    grads: tuple[bool, ...] = ()
    size: int = 0


def arrays(value: Any) -> list[Any]:
    """The tensors and arrays in a value: the value itself, or in lists, tuples and dictionaries."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in arrays(item)]
    return [value] if hasattr(value, "dtype") and hasattr(value, "shape") else []


def is_moderate(array: Any) -> bool:
    """Whether its numbers are of ordinary size, finite, and not of a dtype that rounds coarsely."""
    name = str(array.dtype).removeprefix("torch.")
    if not name.startswith("float"):
        return name != "bfloat16"
    values = wide(array)
    return name in _ROOM and bool((abs(values) <= _MODERATE).all())  # False for NaN


def has_bare_row(array: Any) -> bool:
    """Whether it holds the same number throughout the last axis somewhere."""
    name = str(array.dtype).removeprefix("torch.")
    if not name.startswith("float") or array.ndim < 2 or array.shape[-1] < 2 or not array.size:
        return False
    values = wide(array)
    return bool((values == values[..., :1]).all(axis=-1).any())


def same(one: Read, other: Read, fresh: bool, expects_error: bool) -> bool:
    """Whether two answers to the same request are the same.

    If an error was expected, any two errors of one type are the same; otherwise their texts must
    also agree.
    """
    if one.error is not None or other.error is not None:
        if one.error is None or other.error is None:
            return False
        if one.error.get("type") != other.error.get("type"):
            return False
        return expects_error or _message(one.error) == _message(other.error)
    if fresh:
        return start_alike(one.value, other.value)
    same_grads = one.grads == other.grads
    return same_grads and equal(one.value, other.value) and equal(one.changed, other.changed)


def kinds_of(value: Any) -> list[tuple[tuple[int, ...], str]]:
    """The shapes and dtypes of a value's arrays."""
    return [(tuple(array.shape), str(array.dtype)) for array in arrays(value)]


def of_one_kind(one: Read, other: Read) -> bool:
    """Whether two answers have the same type and hold arrays of the same shapes and dtypes."""
    if one.error is not None or other.error is not None:
        return False
    kinds = kinds_of(one.value)
    same_kind = bool(kinds) and kinds == kinds_of(other.value) and one.grads == other.grads
    return same_kind and type(one.value) is type(other.value) and equal(one.changed, other.changed)


def is_same_rounded(one: Read, other: Read) -> bool:
    """Whether two answers that are no exceptions are the same with float64 rounded to float32."""
    if one.grads != other.grads:
        return False
    values = equal(to_float32(one.value), to_float32(other.value))
    return values and equal(to_float32(one.changed), to_float32(other.changed))


def to_float32(value: Any) -> Any:
    """The value with float32 arrays in place of float64 ones."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(to_float32, value))
    if isinstance(value, dict):
        return {key: to_float32(each) for key, each in value.items()}
    if str(getattr(value, "dtype", "")).removeprefix("torch.") != "float64":
        return value
    if hasattr(value, "data_ptr"):
        return value.float()
    import numpy as np

    with np.errstate(over="ignore"):  # a learner's numbers may be too large
        return value.astype("float32")


def answer_of(request: Frame, reply: Frame) -> Read:
    """Unpack the reply to a request.

    The names that load_state_dict misses tell nothing: a buffer may be saved or not, and whoever
    misses a parameter asks for the parameters next.
    """
    is_load = request.target.get("method") == "load_state_dict"
    return replace(read(reply), value=None) if is_load else read(reply)


def in_order_of(right: Read, answer: Read) -> Read:
    """An answer with its parameters in the order of the right ones: layers may be made in any."""
    pairs, due = (start_of(each.value) or [] for each in (answer, right))
    places = {name: place for place, (name, _) in enumerate(pairs)}
    order = [places.get(name, -1) for name, _ in due]
    is_known = sorted(order) == list(range(len(pairs))) == list(range(len(answer.grads)))
    if order == sorted(order) or not is_known:
        return answer
    value = copy(answer.value)  # a list, or a kind of list
    pairs = [pairs[place] for place in order]
    if isinstance(value, dict):
        value = dict(pairs)
    else:
        value[:] = pairs
    return replace(answer, value=value, grads=tuple(answer.grads[place] for place in order))


def _message(error: Mapping[str, Any]) -> str:
    """The text of an exception, as far as it is about the mistake.

    Its lines are sorted: torch lists what does not fit in a state_dict as the layers were made.
    """
    lines = sorted(str(error.get("message"))[: 4 * _LONGEST].split("\n"))
    text = _BESIDE.sub("", "\n".join(lines))[:_LONGEST]
    return _TWO_SIZES.sub(lambda two: two[2].join(sorted((two[1], two[3]))), text)


def read(reply: Frame) -> Read:
    """Unpack a reply; an invalid one is an error like any other."""
    header = reply.header
    error = header.get("error")
    if error is not None:
        return Read(error=error if isinstance(error, dict) else {})
    try:
        unpacker = Unpacker(reply)
        value, changed = (
            unpacker.unpack(header.get("value")),
            unpacker.unpack(header.get("changed")),
        )
    except WireError as failure:
        return Read(error={"type": "WireError", "message": str(failure)})
    entries = header.get("arrays", [])
    grads = tuple(bool(entry.get("grad")) for entry in entries)
    return Read(None, value, changed, grads, len(reply.data))


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal, with the tolerance of their dtype for numbers."""
    if isinstance(one, Handle) and isinstance(other, Handle):
        return True
    if isinstance(one, Opaque) and isinstance(other, Opaque):
        return one.type_name == other.type_name
    if isinstance(one, (list, tuple)) and type(one) is type(other):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, (float, complex)) and type(one) is type(other):
        close = cmath.isclose(one, other, rel_tol=_ROOM["float64"][0], abs_tol=_ROOM["float64"][1])
        return close or (cmath.isnan(one) and cmath.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, PlainObject) and isinstance(other, PlainObject):
        return equal(vars(one), vars(other))
    if hasattr(one, "dtype") and hasattr(other, "dtype"):
        return _close(one, other)
    return type(one) is type(other) and bool(one == other)


def room(array: Any) -> tuple[float, float]:
    """The relative and the absolute tolerance of an array's dtype."""
    name = str(array.dtype).removeprefix("torch.")
    return _ROOM.get(name, _HALF_ROOM if "float" in name else (0.0, 0.0))


def _close(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or one.dtype != other.dtype or one.shape != other.shape:
        return False
    relative, absolute = room(one)
    if hasattr(one, "data_ptr"):
        import torch

        one, other = one.cpu(), other.cpu()
        wide = torch.complex128 if one.is_complex() else torch.float64
        return torch.equal(one, other) or torch.allclose(  # most are equal, and this is quick
            one.to(wide), other.to(wide), relative, absolute, equal_nan=True
        )
    import numpy

    return bool(numpy.allclose(one, other, relative, absolute, equal_nan=True))
