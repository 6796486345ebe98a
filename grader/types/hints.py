"""The hints of one stage: a ladder from a question to nearly the answer, and what comes after."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rung:
    """One hint; `text` is simple markdown."""

    heading: str
    text: str


@dataclass(frozen=True)
class Hints:
    """A stage's hints. `learnt`, `why` and `read_next` are for whoever has passed; may be empty."""

    title: str
    rungs: tuple[Rung, ...]
    learnt: str = ""
    why: str = ""
    read_next: str = ""
