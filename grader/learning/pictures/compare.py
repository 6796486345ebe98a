"""Holds a learner's trace beside the solution's, and beside the one before the last save. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from grader.learning.pictures.numbers import is_finite
from grader.learning.pictures.types import Number, Trace, TracedStep

Place = tuple[int, int, int]  # block, row, column
_RELATIVE, _ABSOLUTE = 1e-2, 1e-4  # a trace shows two decimals, of half precision too


@dataclass(frozen=True)
class Compared:
    """What is wrong in a step, and what the last save has changed in it.

    `right` is the solution's step, None if the step is right or is not compared. Without `wrong`
    places, the axes differ.
    """

    right: TracedStep | None = None
    wrong: frozenset[Place] = frozenset()
    changed: frozenset[Place] = frozenset()


@dataclass(frozen=True)
class Comparison:
    """A whole trace compared.

    `steps` has an entry for each part of the trace, None for what is no step. `is_compared` says
    whether there was a solution's trace, `first_wrong` is the learner's first step that is wrong.
    """

    steps: tuple[Compared | None, ...]
    is_compared: bool
    first_wrong: TracedStep | None

    @property
    def any_changed(self) -> bool:
        """Whether the last save has changed a number."""
        return any(step.changed for step in self.steps if step)


def compare(mine: Trace, right: Trace | None, before: Trace | None) -> Comparison:
    """Each step of `mine` beside the step of that name at its place in the two others."""
    steps: list[Compared | None] = []
    first_wrong = None
    for number, part in enumerate(mine.parts):
        if not isinstance(part, TracedStep):
            steps.append(None)
            continue
        theirs, older = _step(right, number, part.name), _step(before, number, part.name)
        changed = frozenset(_different(part, older)) if older else frozenset()
        wrong = frozenset(_different(part, theirs)) if theirs else frozenset()
        is_right = theirs is None or not (wrong or _sizes(theirs) != _sizes(part))
        steps.append(Compared(None if is_right else theirs, wrong, changed))
        if not is_right:
            first_wrong = first_wrong or part
    return Comparison(tuple(steps), right is not None, first_wrong)


def _step(trace: Trace | None, number: int, name: str) -> TracedStep | None:
    """The step at that place, if it has that name and is compared at all."""
    part = trace.parts[number] if trace and number < len(trace.parts) else None
    is_same = isinstance(part, TracedStep) and part.name == name and part.compare
    return part if is_same else None  # type: ignore[return-value]


def _sizes(step: TracedStep) -> list[int]:
    return [axis.size for axis in step.axes]


def _different(step: TracedStep, other: TracedStep) -> Iterator[Place]:
    """The places of numbers that differ; none if the axes do."""
    if _sizes(step) != _sizes(other):
        return
    for b, (block, its) in enumerate(zip(step.blocks, other.blocks, strict=True)):
        for i, (row, other_row) in enumerate(zip(block.rows, its.rows, strict=True)):
            for j, (one, two) in enumerate(zip(row, other_row, strict=True)):
                if not _close(one, two):
                    yield b, i, j


def _close(one: Number, two: Number) -> bool:
    if isinstance(one, bool) or isinstance(two, bool) or not (is_finite(one) and is_finite(two)):
        return one == two or (one != one and two != two)
    return math.isclose(one, two, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
