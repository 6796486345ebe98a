"""The numbers that a failing case gave to the learner's code. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from grader.checking.inputs import FEW
from grader.learning.repro.script import is_call
from grader.read.stubs import parameters
from grader.run.facts import CaseFact
from grader.run.worker.packing import Unpacker
from grader.types.text import listed

_CALLS = 3  # the last ones, because an earlier answer may be the wrong one


def inputs(fact: CaseFact, stub: str) -> list[tuple[str, str]]:
    """Each tensor or array of more than a few numbers: its names with its shape, and its numbers.

    The `stub` is the stage's, for the names of its parameters. Arguments that a message shows in
    full, because they are small, are left out.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for exchange in [each for each in fact.exchanges if is_call(each)][-_CALLS:]:
        header = exchange.request.header
        unpacker = Unpacker(exchange.request)
        names = _names(header["target"], parameters(stub, bound=True))
        args = unpacker.unpack(header["args"])
        given = {(names[at : at + 1] or [f"input {at + 1}"])[0]: v for at, v in enumerate(args)}
        for name, array in _arrays({**given, **unpacker.unpack(header["kwargs"])}):
            shape = " x ".join(map(str, array.shape))
            known = found.setdefault((shape, str(array)), [])
            known.extend([] if name in known else [name])
    return [(f"{listed(names)} [{shape}]", text) for (shape, text), names in found.items()]


def _names(target: dict[str, Any], known: dict[str, list[str]]) -> list[str]:
    """The parameters of the called function, or of the only class's objects."""
    if "function" in target:
        return known.get(target["function"], [])
    calls = (".forward", ".__call__")
    forwards = [names for code, names in known.items() if code.endswith(calls)]
    return forwards[0] if len(forwards) == 1 else []


def _arrays(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _arrays(each, f"{name} {key}".strip())
    elif isinstance(value, (list, tuple)):
        for at, each in enumerate(value, start=1):
            yield from _arrays(each, f"{name} {at}".strip())
    elif hasattr(value, "dtype") and math.prod(getattr(value, "shape", ())) > FEW:
        yield name, value.detach().cpu() if hasattr(value, "detach") else value
