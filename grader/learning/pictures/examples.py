"""Loads a stage's example, ready to run, from the author's file in hints/traces/ or the like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from grader.read.faults import author_module
from grader.types.course import Stage
from grader.types.errors import CourseError

TraceFunction = Callable[[Any], Iterator[Any]]


def read_trace(stage: Stage, file: Path) -> TraceFunction:
    """The function `trace` of an author's file of the stage. Raises CourseError."""
    function = getattr(author_module(stage, file), "trace", None)
    if not callable(function):
        raise CourseError(f"{stage.place(file)}: has no function trace(submission)")
    return function  # type: ignore[no-any-return]
