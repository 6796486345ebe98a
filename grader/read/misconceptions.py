"""Loads a stage's misconceptions from the author's file hints/misconceptions/<slug>.py."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from grader.misconceptions import MARK, Known, Misconception, Symptom, Way, misconception
from grader.read.faults import author_module
from grader.types.course import Stage
from grader.types.errors import CourseError, close_to

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def read_misconceptions(stage: Stage) -> tuple[Misconception, ...]:
    """The misconceptions of `stage`. Raises CourseError as `read_known` does."""
    return read_known(stage).misconceptions


def read_known(stage: Stage) -> Known:
    """What the author knows of mistakes in `stage`, in the file's order; nothing without a file.

    Raises CourseError if the file cannot be imported, has no misconception, uses an id twice or
    names something that is not an entry point of the stage.
    """
    file = stage.misconceptions_file
    if not file.is_file():
        return Known()
    place = stage.place(file)
    try:
        module = author_module(stage, file)
    except CourseError as error:
        raise CourseError(f"{error}{_meant(str(error))}") from error
    marked = [mark for value in list(vars(module).values()) for mark in _marks(value)]
    found = tuple(mark for mark in marked if isinstance(mark, Misconception))
    symptoms = tuple(mark for mark in marked if isinstance(mark, Symptom))
    ways = tuple(mark for mark in marked if isinstance(mark, Way))
    if not found:
        raise CourseError(f"{place}: has no misconception: mark one with @misconception(...)")
    names = {entry.name for entry in stage.entry_points}
    marks = [(mark.id, f"replaces {mark.replaces}", mark.replaces) for mark in found]
    marks += [(mark.id, f"is of {mark.of}", mark.of) for mark in symptoms]
    marks += [(f"values of {mark.of}", f"is of {mark.of}", mark.of) for mark in ways]
    faults = []
    for index, (id, what, entry) in enumerate(marks):
        if entry not in names:
            close = close_to(entry, names)
            faults.append(f"{place}: '{id}' {what}, which is not an entry point{close}")
        if id in {other for other, *_ in marks[:index]}:
            faults.append(f"{place}: the id '{id}' is used twice")
    if faults:
        raise CourseError("\n".join(faults))
    return Known(found, symptoms, ways)


def _marks(value: Any) -> list[Any]:
    """The mark of a function or a class, and those of a list of them."""
    values = value if isinstance(value, list) else [value]
    return [vars(each).get(MARK) for each in values if hasattr(each, "__dict__")]


def _meant(error: str) -> str:
    """A suggestion for an unknown keyword of `misconception`."""
    words = re.search(r"misconception\(\) got an unexpected keyword argument '(\w+)'", error)
    if words is None or "Did you mean" in error:  # Python's own advice, from 3.13 on
        return ""
    return close_to(words[1], inspect.signature(misconception).parameters)


def other_call(mistake: Misconception, right: Callable[..., Any]) -> str:
    """Why a misconception cannot be called like the right answer, "" if it can."""
    try:
        taken = inspect.signature(mistake.implementation)
        given = inspect.signature(right).parameters.values()
    except (TypeError, ValueError):
        return ""
    needed = [each for each in given if each.default is each.empty]
    for wanted in (needed, given):
        by_place = [each.name for each in wanted if each.kind in _BY_PLACE]
        by_name = {each.name: 0 for each in wanted if each.kind is each.KEYWORD_ONLY}
        try:
            taken.bind(*by_place, **by_name)
        except TypeError as error:
            call = f"{mistake.replaces}({', '.join([*by_place, *by_name])})"
            return f"it cannot be called as {call}: {error}"
    return ""
