"""Loads a stage's example, ready to run, from the author's file in hints/traces/ or the like."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from grader.read.faults import fault_of
from grader.types.course import Course, Stage
from grader.types.errors import CourseError

TraceFunction = Callable[[Any], Iterator[Any]]


def traced_stages(course: Course) -> tuple[Stage, ...]:
    """The stages that have a trace, in the course's order."""
    return tuple(stage for stage in course.stages if stage.trace_file.is_file())


def read_trace(stage: Stage, file: Path) -> TraceFunction:
    """The function `trace` of an author's file of the stage. Raises CourseError."""
    function = getattr(read_module(stage, file), "trace", None)
    if not callable(function):
        raise CourseError(f"{stage.place(file)}: has no function trace(submission)")
    return function  # type: ignore[no-any-return]


def read_module(stage: Stage, file: Path) -> ModuleType:
    """An author's file of a stage, imported. Raises CourseError."""
    place = stage.place(file)
    spec = importlib.util.spec_from_file_location(f"{file.parent.name}_{stage.slug}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CourseError(fault_of(error, {str(file): place})) from error
    return module
