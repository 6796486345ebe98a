"""Answers that are more alike than what a task brings about: a place to look, never a verdict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Alike:
    """Students whose answers to one stage, by its slug, are alike in what few others have written.

    `share` is how much of that is alike, 1.0 for all of it; more than two students are alike in all
    of it. `size` is the number of tokens that are alike. `excerpts` are the lines of the first two.
    """

    stage: str
    students: tuple[str, ...]
    share: float
    size: int
    excerpts: tuple[str, str]


@dataclass(frozen=True)
class Similar:
    """What there is to look at, the most first in each stage; `left_out` counts what more there is.

    `rare` is how many students at most may have written what counts.
    """

    alike: tuple[Alike, ...]
    rare: int
    left_out: int = 0
