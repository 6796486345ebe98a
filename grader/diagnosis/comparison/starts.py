"""How the starting values of a module differ from the right ones, which are drawn at random.

It compares names, shapes, parameters of equal numbers, and the spread of large parameters.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from grader.types.text import listed

_MANY = 4096  # parameters with at least this many values are compared by their spread
_SPREAD_ROOM = 0.05


def start_of(value: Any) -> list[tuple[str, Any]] | None:
    """The parameters by name in an answer, None if it holds anything else."""
    found = list(value.items()) if isinstance(value, dict) else value
    is_start = isinstance(found, list) and all(map(is_named_tensor, found))
    return found if is_start else None


def is_named_tensor(pair: Any) -> bool:
    """Whether it is a name with a tensor; False if torch is not loaded."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(pair, tuple) or len(pair) != 2:
        return False
    return isinstance(pair[0], str) and isinstance(pair[1], torch.Tensor)


def other_names(one: Any, other: Any) -> bool:
    """Whether two answers hold parameters, but not of the same names."""
    one, other = start_of(one), start_of(other)
    return bool(one and other) and {name for name, _ in one} != {name for name, _ in other}


def start_alike(one: Any, other: Any) -> bool:
    """Whether two answers hold parameters of one kind."""
    one, other = start_of(one), start_of(other)
    if one is None or other is None or _kinds(one) != _kinds(other):
        return False
    return not any(_unlike(tensor, right) for _, tensor, right in _side_by_side(one, other))


def misshapen_alike(one: Any, other: Any, right: Any) -> bool:
    """Whether two answers hold parameters of the right names and, both, of the same wrong shapes.

    How such parameters start tells nothing.
    """
    if other_names(one, right):
        return False
    starts = [start_of(each) for each in (one, other, right)]
    kinds, other_kinds, right_kinds = (each and _kinds(each) for each in starts)
    return bool(kinds) and kinds == other_kinds != right_kinds


def start_symptom(starts: Sequence[tuple[Any, Any]]) -> tuple[str, str] | None:
    """What is wrong with each first start, compared with the second: an id and words.

    None if that differs from pair to pair.
    """
    pairs = [(start_of(one), start_of(other)) for one, other in starts]
    found = [_told(one, other) for one, other in pairs if one is not None and other is not None]
    if len(found) < len(pairs) or None in found or len({each and each[0] for each in found}) > 1:
        return None
    return found[0]


def _told(one: Sequence[Any], other: Sequence[Any]) -> tuple[str, str] | None:
    if _kinds(one) != _kinds(other):
        return _bare(one, other) or _other_names(one, other) or _packed(one, other)
    unlike: dict[str, dict[str, float]] = {}
    for name, tensor, right in _side_by_side(one, other):
        for way, number in _unlike(tensor, right).items():
            unlike.setdefault(way, {})[name] = number
    for way, numbers in unlike.items():
        number = next(iter(numbers.values()))
        if way == "spread" or set(numbers.values()) != {number}:
            continue  # a stage may allow other spreads than its solution's: its check tells
        words = {
            "constant": f"with {number:.6g} at every position, not with random numbers",
            "number": f"with other numbers than {number:.6g}",
        }[way]
        names = listed(list(numbers))
        verb = "starts" if len(numbers) == 1 else "start"
        return f"start:{way}:{'+'.join(numbers)}", f"{names} {verb} {words}."
    return None


def _other_names(one: Sequence[Any], other: Sequence[Any]) -> tuple[str, str] | None:
    """Parameters of the right shapes, in the right order, under other names."""
    if [tensor.shape for _, tensor in one] != [tensor.shape for _, tensor in other]:
        return None
    pairs = zip((name for name, _ in one), (name for name, _ in other), strict=True)
    unlike = [(name, right) for name, right in pairs if name != right]
    if not unlike:
        return None
    rest = ", and so on" if len(unlike) > 1 else ""
    named = f"{unlike[0][0]}, not {unlike[0][1]}{rest}"
    return "start:names", f"Your parameters have the right shapes, but other names: {named}."


def _bare(one: Sequence[Any], other: Sequence[Any]) -> tuple[str, str] | None:
    """Parameters that stand where layers with parameters are expected."""
    due = [name for name, _ in other]
    held = {name: [each for each in due if each.startswith(f"{name}.")] for name, _ in one}
    bare = [name for name in held if held[name]]
    if not bare:
        return None
    verb = "is a bare parameter" if len(bare) == 1 else "are bare parameters"
    layer = f"{bare[0]} must be a layer, which holds {listed(held[bare[0]])}"
    return "start:bare", f"{listed(bare)} {verb}. {layer}."


def _packed(one: Sequence[Any], other: Sequence[Any]) -> tuple[str, str] | None:
    """A parameter that is as large as several missing ones, along its first axis or its last."""
    given, due = ({name for name, _ in side} for side in (one, other))
    missing = [(name, tensor) for name, tensor in other if name not in given and tensor.dim() == 2]
    for name, tensor in one:
        if name in due or not missing:
            continue
        first, right = missing[0]
        alike = sum(each.shape == right.shape for _, each in missing)
        rows, columns = right.shape
        for number in range(2, alike + 1):
            if tensor.shape in ((number * rows, columns), (columns, number * rows)):
                words = f"as large as {number} of the missing parameters together, such as {first}"
                return "start:packed", f"{name} is {words}. Here each has a layer of its own."
    return None


def _side_by_side(one: Sequence[Any], other: Sequence[Any]) -> Iterator[tuple[str, Any, Any]]:
    right = dict(other)
    return ((name, tensor, right[name]) for name, tensor in one)


def _kinds(start: Sequence[Any]) -> list[Any]:
    return sorted((name, str(tensor.dtype), tuple(tensor.shape)) for name, tensor in start)


def _unlike(tensor: Any, right: Any) -> dict[str, float]:
    """In which way a parameter differs from the right one, with a number; {} if in none."""
    number, due = _number(tensor), _number(right)
    if due is not None:
        return {} if number == due else {"number": due}
    if number is not None:
        return {"constant": number}
    if tensor.numel() < _MANY:
        return {}
    spread, right_spread = float(tensor.std()), float(right.std())
    if abs(spread - right_spread) <= _SPREAD_ROOM * max(spread, right_spread):
        return {}
    return {"spread": spread / right_spread}  # so for NaN too


def _number(tensor: Any) -> float | None:
    """The number that stands throughout a parameter, None if it was drawn."""
    first = tensor.flatten()[:1]
    if not tensor.numel() or not bool((tensor == first).all()):
        return None
    if tensor.is_complex() or (tensor.numel() == 1 and bool(first.any())):
        return None
    return float(first)
