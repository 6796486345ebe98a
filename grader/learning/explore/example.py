"""Loads the example to play with, from the author's file hints/explore/<slug>.py.

CONTROLS = (Control("days", "Days", (7, 14)),)

def explore(submission, days):
    x = torch.arange(days)
    yield Step("x", x, "days")
    yield Step("smooth", submission.smooth(x), "days")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from grader.read.faults import author_module
from grader.tracing import Control
from grader.types.course import Stage
from grader.types.errors import CourseError


@dataclass(frozen=True)
class Example:
    """`function(submission, **values)` yields Steps and sentences for the controls' values."""

    controls: tuple[Control, ...]
    function: Callable[..., Iterator[Any]]


def read_explore(stage: Stage) -> Example:
    """The stage's example. Raises CourseError."""
    place = stage.place(stage.explore_file)
    module = author_module(stage, stage.explore_file)
    function = getattr(module, "explore", None)
    if not callable(function):
        raise CourseError(f"{place}: has no function explore(submission, ...)")
    controls = tuple(getattr(module, "CONTROLS", ()))
    for control in controls:
        if not isinstance(control, Control) or not control.values:
            raise CourseError(f"{place}: CONTROLS: {control!r} is not a Control with values")
        if start_of(control) not in control.values:
            raise CourseError(f"{place}: '{control.name}' starts with none of its values")
    return Example(controls, function)


def start_of(control: Control) -> str | float:
    """The value that a control starts with."""
    return control.values[0] if control.start is None else control.start
