"""What `grade suggest` suggests to an author."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """A call of a function, with its arguments by name.

    `changed` has the code for each argument that differs from a check's.
    """

    entry: str
    given: Mapping[str, Any]
    changed: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many numbers its arguments hold."""
        return sum(map(_size, self.given.values()))


def _size(value: Any) -> int:
    if isinstance(value, (list, tuple, set, dict, str)):
        return len(value)
    return int(value.numel()) if hasattr(value, "numel") else int(getattr(value, "size", 1))


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that may be a misconception: its id, its change and its code.

    `imports` are the lines that the code needs, `helpers` the definitions, by name.
    """

    id: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    code: str
    imports: tuple[str, ...] = ()
    helpers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Parting:
    """A call that no check makes, and the `pairs` that only it tells apart, by their names.

    Of a pair with the solution only the other's name is there: a check with this call catches it.
    """

    call: Call
    pairs: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Example:
    """An example for the docstring of a function, as a doctest."""

    entry: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Suggestions:
    """Everything for one stage; `tried` is how many changes of the solution were tried.

    `failing` are the checks that the solution itself does not pass.
    """

    slug: str
    mistakes: tuple[Mistake, ...]
    partings: tuple[Parting, ...]
    examples: tuple[Example, ...]
    tried: int
    failing: tuple[str, ...] = ()
