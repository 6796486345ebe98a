"""Inputs that no check tries: calls that differ from a check's in one argument, given or not."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grader.authoring.suggest.behaviour import Find, alike, outcome
from grader.authoring.suggest.types import Call, Parting

_NUMBERS = (1, 2, 3, 5, 6, 7, 8, 12)
_BASES = 3  # calls of an entry point to vary
_MOST = 4  # inputs to suggest


def partings(
    calls: Sequence[Call], right: Find, pairs: Sequence[tuple[str, Find, str, Find]]
) -> Iterator[Parting]:
    """Calls that tell apart pairs that no check does; first the call that tells most apart.

    A pair is two implementations, each with its name; that of the solution `right` is "".
    """
    left = list(pairs)
    new = (
        one for one in _varied_calls(calls, right) if not any(alike(one, each) for each in calls)
    )
    tried = [call for call in new if outcome(right, call) is not None]
    for _ in range(_MOST):
        best: list[tuple[str, Find, str, Find]] = []
        chosen: Call | None = None
        for call in tried:
            parted = [pair for pair in left if _parts(call, pair)]
            if len(parted) > len(best):
                best, chosen = parted, call
        if chosen is None:
            return
        names = (tuple(filter(None, (one, other))) for one, _, other, _ in best)
        yield Parting(chosen, tuple(names))
        left = [pair for pair in left if pair not in best]


def _parts(call: Call, pair: tuple[str, Find, str, Find]) -> bool:
    one, other = outcome(pair[1], call), outcome(pair[3], call)
    return one is not None and other is not None and not one.equals(other)


def _varied_calls(calls: Sequence[Call], right: Find) -> Iterator[Call]:
    by_entry: dict[str, list[Call]] = {}
    for call in calls:
        by_entry.setdefault(call.entry, []).append(call)
    for entry, own in by_entry.items():
        defaults = _defaults(right(entry))
        for call in sorted(own, key=lambda each: each.size)[-_BASES:]:
            for name, value in (defaults | dict(call.given)).items():
                for words, other in _varied(name, value):
                    told = words if name in call.given else f"{name}={words}"
                    yield Call(call.entry, {**call.given, name: other}, {name: told})


def _defaults(function: Any) -> dict[str, Any]:
    """The parameters that a call may leave out, with their values."""
    try:
        given = inspect.signature(function).parameters
    except ValueError:  # of some functions that are written in C
        return {}
    return {name: each.default for name, each in given.items() if each.default is not each.empty}


def _varied(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Other values in place of an argument, each with the words for it."""
    if isinstance(value, bool):
        yield repr(not value), not value
    elif isinstance(value, int):
        yield from ((repr(number), number) for number in _NUMBERS if number != value)
    elif isinstance(value, float):
        yield from ((repr(number), number) for number in (0.0, 0.5, -value, 10 * value))
    elif isinstance(value, (str, list, tuple)):
        swapped = value.swapcase() if isinstance(value, str) else value
        for other in (value[:0], value[:1], value * 2, value[::-1], value[:1] * 3, swapped):
            if other != value:
                yield repr(other), other
    elif hasattr(value, "dtype") and value.shape:
        yield f"{name}[:1]", value[:1]
        if "bool" in str(value.dtype):
            yield f"~{name}", ~value
        elif "float" in str(value.dtype):
            if (value == value.flatten()[:1]).all():  # such numbers hide what a factor does
                yield _stepped(name, value)
            yield from ((f"{by} * {name}", value * by) for by in (100, -1, 0))


def _stepped(name: str, value: Any) -> tuple[str, Any]:
    """An array plus 0, 1, 2 ... along its last axis."""
    last = value.shape[-1]
    if hasattr(value, "new_tensor"):
        return f"{name} + torch.arange({last})", value + value.new_tensor(range(last))
    import numpy

    return f"{name} + np.arange({last})", value + numpy.arange(last, dtype=value.dtype)


def written(call: Call) -> str:
    """A call as code; arrays stand there by the names of their parameters."""
    told = [_told(name, value, call.changed) for name, value in call.given.items()]
    return f"{call.entry}({', '.join(told)})"


def _told(name: str, value: Any, changed: Mapping[str, str]) -> str:
    if name in changed:
        return changed[name]
    return name if hasattr(value, "dtype") else repr(value)


def shapes(call: Call) -> str:
    """The shapes of a call's arrays, as "scores (2, 3), slopes (3)"; "" if it has none."""
    found = [
        f"{name} ({', '.join(map(str, value.shape))})"
        for name, value in call.given.items()
        if hasattr(value, "dtype")
    ]
    return ", ".join(found)
