"""Runs a stage's example with the values that a person chose, and with functions swapped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

from grader.learning.explore.example import Example
from grader.learning.pictures.tracer import ExampleRun
from grader.learning.pictures.types import Trace, TracedStep
from grader.read.misconceptions import read_misconceptions
from grader.run.answers import Loaded
from grader.run.failures import AnswerError, SubmissionError
from grader.run.solutions import local_solutions
from grader.run.workers import Interpreter
from grader.tracing import Control
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, KitError
from grader.types.submission import Submission
from grader.types.text import safe

_LONGEST_TEXT = 200  # characters of a text that a person types
_OURS = "course."  # begins the swap for the course's own version of a function
_DIGITS = 6  # significant digits of a number on the page


class Explorer:
    """The example of `stage`, which `run` can run again and again.

    A function that the learner has not written yet is the course's own, except in a student's copy,
    which has no solutions. The workers of one submission serve all of its runs.
    """

    def __init__(
        self, course: Course, stage: Stage, example: Example, interpreter: Interpreter
    ) -> None:
        self._course, self._stage = course, stage
        self._example, self._interpreter = example, interpreter
        self._submission: Submission | None = None
        self._workers: dict[str, Loaded] = {}  # by stage
        self._stages = (*course.required(stage), stage)
        self._mistakes = {m.id: m for each in self._stages for m in read_misconceptions(each)}
        self._solutions: dict[str, Callable[..., Any]] = {}
        for each in () if course.is_partial else self._stages:
            find = local_solutions(course, each)
            self._solutions |= {entry.name: find(entry.name) for entry in each.entry_points}

    @property
    def swaps(self) -> list[dict[str, Any]]:
        """What may replace a function: `id`, the name of the `function`, a `label`, what it `says`.

        In the order of the stages: the course's own version, then the known mistakes.
        """
        found = []
        for name in [entry.name for stage in self._stages for entry in stage.entry_points]:
            if name in self._solutions:
                label = "the course's own version"
                found.append({"id": _OURS + name, "function": name, "label": label, "says": ""})
            found += [
                {"id": m.id, "function": name, "label": m.id.replace("_", " "), "says": m.says}
                for m in self._mistakes.values()
                if m.replaces == name
            ]
        return found

    def run(self, submission: Submission, settings: Sequence[Any], swap: str) -> dict[str, Any]:
        """The steps for these settings, one for each control, as plain data for JSON.

        A setting is the text itself, or the number of the chosen value. `swap` is the id of a swap
        or "". Raises KitError for anything else.
        """
        controls = self._example.controls
        if len(settings) != len(controls):
            raise KitError(f"there are {len(controls)} controls: reload the page")
        values = {c.name: _value(c, s) for c, s in zip(controls, settings, strict=True)}
        cast = _Cast(self._swapped(swap), self._solutions)

        def function(own: Any) -> Iterator[Any]:
            cast.own = own
            try:
                yield from self._example.function(cast, **values)
            except (KitError, AnswerError):
                raise
            except Exception as error:
                if set(cast.whose.values()) <= {"yours"}:
                    raise
                raise AnswerError(f"{type(error).__name__}: {error}") from error

        if submission != self._submission:
            for loaded in self._workers.values():
                loaded.worker.release()
            self._submission, self._workers = submission, {}
        run = ExampleRun(
            *(self._course, self._stage, submission, self._interpreter),
            self._stage.explore_file,
            self._workers,
        )
        return _plain_run(cast.corrected(run.trace(function)), cast.whose)

    def _swapped(self, swap: str) -> Mapping[str, Callable[..., Any]]:
        name = swap.removeprefix(_OURS)
        if swap in self._mistakes:
            mistake = self._mistakes[swap]
            return {mistake.replaces: mistake.implementation}
        if swap.startswith(_OURS) and name in self._solutions:
            return {name: self._solutions[name]}
        if swap:
            raise KitError(f"unknown swap '{swap[:80]}': reload the page")
        return {}


class _Cast:
    """The `submission` of an example: the learner's function, a swapped one or the course's own.

    `whose` says of each function that answered which of these it was.
    """

    own: Any

    def __init__(
        self, swapped: Mapping[str, Callable[..., Any]], solutions: Mapping[str, Callable[..., Any]]
    ) -> None:
        self._swapped, self._solutions = swapped, solutions
        self.whose: dict[str, str] = {}
        self._last = ""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._last = name
            if name in self._swapped:
                self.whose[name] = "swapped"
                return self._swapped[name](*args, **kwargs)
            try:
                found = getattr(self.own, name)(*args, **kwargs)
            except SubmissionError as error:
                if not error.not_written or name not in self._solutions:
                    raise
                self.whose[name] = "course"
                return self._solutions[name](*args, **kwargs)
            self.whose[name] = "yours"
            return found

        return call

    def corrected(self, trace: Trace) -> Trace:
        """The trace, whose stop names the function called last, whoever wrote it.

        It names no stage to fix if the learner's code may not be the cause.
        """
        stop = trace.stop
        if stop is None:
            return trace
        if self.whose.get(self._last, "yours") != "yours":
            stop = replace(stop, function=self._last, not_written=False, slug="")
        if "swapped" in self.whose.values():
            stop = replace(stop, slug="")
        return replace(trace, stop=stop)


def _value(control: Control, setting: Any) -> str | float:
    if control.kind == "text":
        if isinstance(setting, str) and len(setting) <= _LONGEST_TEXT:
            return safe(setting)
        raise KitError(f"{control.label}: type at most {_LONGEST_TEXT} characters")
    if type(setting) is not int or not 0 <= setting < len(control.values):
        raise KitError(f"{control.label}: there is no such value: reload the page")
    return control.values[setting]


def _plain_run(trace: Trace, whose: Mapping[str, str]) -> dict[str, Any]:
    for part in trace.parts:
        if not isinstance(part, (str, TracedStep)):
            raise CourseError(f"explore of {trace.slug}: yield only texts and Steps")
    run = {"parts": trace.parts, "stop": trace.stop, "printed": trace.printed, "whose": whose}
    plain: dict[str, Any] = _plain(run)
    return plain


def _plain(value: Any) -> Any:
    """The value with plain dictionaries and lists; JSON has no inf and nan, so they are strings."""
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else str(value)
    return _plain(vars(value)) if is_dataclass(value) else value
