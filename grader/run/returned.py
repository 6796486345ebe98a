"""Checks whether the learner's code returned the type that an entry point promises.

Nothing that could not travel reaches a check.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from grader.run.failures import WrongReturn
from grader.run.value_words import described
from grader.run.worker.packing import TRAVELS, Handle, Iterated, Opaque, PlainObject
from grader.types.course import EntryPoint

_KIND_WORDS = {
    "tensor": "a torch.Tensor",
    "array": "a numpy array",
    "number": "a number",
    "any": "any value",
}
_NESTED = (
    "\n  in words  a tuple within a tuple: a call may return one already, and without brackets "
    "`x if c else y, z` means (x if c else y), z"
)


def checked(value: Any, entry: EntryPoint, call: str) -> Any:
    """`value`, if it has the entry point's type. Raises WrongReturn otherwise."""
    if entry.returns == ("any",):
        return _whole(value, call)
    missing = ": is a `return` missing?" if value is None else ""
    if isinstance(value, Handle):
        missing = ": call it with its input"
    if isinstance(value, Opaque) and value.type_name == "coroutine":
        missing = ": write `def` without `async`"
    if isinstance(value, Iterated) and value.type_name == "generator":
        missing = ": write `return` in place of `yield`"
    if entry.is_tuple:
        wanted = f"a tuple of {len(entry.returns)}"
        if not isinstance(value, tuple) or len(value) != len(entry.returns):
            raise WrongReturn(
                f"{call} returned {described(value)}{missing}\n"
                f"  expected  {wanted}: ({', '.join(entry.returns)})"
            )
        parts = zip(value, entry.returns, strict=True)
        for number, (part, kind) in enumerate(parts, start=1):
            if not _is_kind(part, kind):
                raise WrongReturn(
                    f"{call} returned {described(part)} as value {number} of {len(value)}\n"
                    f"  expected  {_KIND_WORDS[kind]}"
                    + (_NESTED if isinstance(part, tuple) else "")
                )
        return _whole(value, call)
    if not _is_kind(value, entry.returns[0]):
        raise WrongReturn(
            f"{call} returned {described(value)}{missing}\n"
            f"  expected  {_KIND_WORDS[entry.returns[0]]}"
        )
    return value


def _whole(value: Any, call: str) -> Any:
    """`value`, if all of it has travelled. Raises WrongReturn otherwise."""
    lost = next(_lost(value), None)
    if lost is None:
        return value
    where = "" if lost is value else f"{described(value)} that holds "
    raise WrongReturn(
        f"{call} returned {where}{described(lost)}, which cannot pass to the checks\n"
        f"  expected  {TRAVELS}"
    )


def _lost(value: Any) -> Iterator[Opaque]:
    """The parts of a value that could not travel."""
    if isinstance(value, Opaque):
        yield value
    elif isinstance(value, dict):
        yield from _lost([*value, *value.values()])
    elif isinstance(value, PlainObject):
        yield from _lost(list(vars(value).values()))
    elif isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            yield from _lost(each)


def _is_kind(value: Any, kind: str) -> bool:
    if kind == "any":
        return True
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    library = sys.modules.get("torch" if kind == "tensor" else "numpy")
    if library is None:
        return False
    return isinstance(value, library.Tensor if kind == "tensor" else library.ndarray)
