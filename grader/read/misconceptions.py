"""hints/misconceptions/<slug>.py -> the stage's known wrong answers. The file is the author's."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable
from typing import Any

from grader.misconceptions import MARK, Misconception, misconception
from grader.read.faults import fault_of
from grader.types.course import Stage
from grader.types.errors import CourseError, close_to

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def read_misconceptions(stage: Stage) -> tuple[Misconception, ...]:
    """The misconceptions of `stage` in the file's order; none where there is no file.

    Raises CourseError if the file cannot be imported, holds none, uses an id twice or replaces
    something that is no entry point of the stage.
    """
    file = stage.misconceptions_file
    if not file.is_file():
        return ()
    place = stage.place(file)
    spec = importlib.util.spec_from_file_location(f"misconceptions_{stage.slug}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CourseError(fault_of(error, {str(file): place}) + _meant(error)) from error
    marked = [
        vars(value).get(MARK) for value in list(vars(module).values()) if hasattr(value, "__dict__")
    ]
    found = tuple(mark for mark in marked if isinstance(mark, Misconception))
    if not found:
        raise CourseError(f"{place}: holds no misconception: mark one with @misconception(...)")
    names = {entry.name for entry in stage.entry_points}
    for index, mark in enumerate(found):
        if mark.replaces not in names:
            raise CourseError(
                f"{place}: '{mark.id}' replaces {mark.replaces}, which is no entry point"
            )
        if mark.id in {other.id for other in found[:index]}:
            raise CourseError(f"{place}: the id '{mark.id}' is used twice")
    return found


def _meant(error: Exception) -> str:
    """What comes close to a keyword of `misconception` that there is not."""
    words = re.search(r"misconception\(\) got an unexpected keyword argument '(\w+)'", str(error))
    if words is None or "Did you mean" in str(error):  # Python's own advice, from 3.13 on
        return ""
    return close_to(words[1], inspect.signature(misconception).parameters)


def other_call(mistake: Misconception, right: Callable[..., Any]) -> str:
    """Why a misconception cannot be called as the right answer can, "" if it can."""
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
