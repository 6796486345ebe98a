"""The hints of one stage: a ladder from a question to nearly the answer, and what follows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rung:
    """One hint; `text` is simple markdown."""

    heading: str
    text: str


@dataclass(frozen=True)
class Hints:
    """A stage's hints. Learners read `learnt`, `why` and `read_next` after passing; may be ""."""

    title: str
    rungs: tuple[Rung, ...]
    learnt: str = ""
    why: str = ""
    read_next: str = ""
