"""Runs a stage's small example on a learner's code and records every step's tensor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from grader.learning.pictures.types import (
    Axis,
    Block,
    Number,
    Rows,
    Stop,
    Trace,
    TracedHeatmap,
    TracedStep,
)
from grader.read.faults import author_module, fault_of
from grader.run.answers import Loaded, WorkerAnswers
from grader.run.failures import AnswerError
from grader.run.importing import Import
from grader.run.remote import RemoteSubmission
from grader.run.solutions import solution_files
from grader.run.under_check import StageUnderCheck
from grader.run.worker.wire import Frame
from grader.run.workers import Interpreter
from grader.tracing import Curves, Heatmap, Step
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, KitError
from grader.types.submission import Submission

_BLOCKS, _PLACES = 8, 16  # the most tables of a tensor, and the most rows and columns of each
_COMPARED = range(4, 4097)  # sizes of tensors that are compared with the earlier steps
_SEED = 1
_OF_A_CHECK = ("given", "measured", "held_by", "tried")  # not functions of the learner
TraceFunction = Callable[[Any], Iterator[Any]]


def read_trace(stage: Stage, file: Path) -> TraceFunction:
    """The function `trace` of an author's file of the stage. Raises CourseError."""
    function = getattr(author_module(stage, file), "trace", None)
    if not callable(function):
        raise CourseError(f"{stage.place(file)}: has no function trace(submission)")
    return function  # type: ignore[no-any-return]


def trace(
    course: Course,
    stage: Stage,
    submission: Submission,
    interpreter: Interpreter,
    file: Path | None = None,
) -> Trace:
    """Run one stage's example to its end, or to the first function that gives no answer.

    It is the stage's trace, or what the author wrote in `file`. Raises CourseError if that is
    wrong.
    """
    file = file or stage.trace_file
    function = read_trace(stage, file)  # imports torch, at the same time as the interpreter
    return ExampleRun(course, stage, submission, interpreter, file).trace(function)


def right_trace(course: Course, trace_of: Trace, interpreter: Interpreter) -> Trace | None:
    """The same trace of the solution; None if the course has no solutions or nothing to compare."""
    if not any(isinstance(part, TracedStep) and part.compare for part in trace_of.parts):
        return None
    try:
        solutions = Submission("solutions", solution_files(course))
    except CourseError:
        return None
    return trace(course, course.stage(trace_of.slug), solutions, interpreter)


class ExampleRun:
    """A run of an example of one stage, which the author wrote in `file`.

    With `kept` it uses the workers in there, by stage, and leaves its own for the next run.
    """

    def __init__(
        self,
        course: Course,
        stage: Stage,
        submission: Submission,
        interpreter: Interpreter,
        file: Path,
        kept: dict[str, Loaded] | None = None,
    ) -> None:
        self._stage = stage
        self._file, self._place = file, stage.place(file)
        self._functions = _Functions(course, stage, submission, interpreter, self._place, kept)
        self._sizes: dict[str, int] = {}
        self._seen: list[tuple[str, tuple[int, ...], list[Number]]] = []

    def trace(self, function: TraceFunction) -> Trace:
        """Run the example and collect what it yields. Raises CourseError if the file is wrong."""
        parts: list[TracedStep | TracedHeatmap | Curves | str] = []
        stop = None
        try:
            for part in function(_Submission(self._functions.find)):
                parts.append(self._traced(part))
        except KitError:
            raise
        except (AnswerError, NoPictureError) as error:
            stop = self._functions.stop(str(error))
        except Exception as error:
            # A strange answer can break the example anywhere. Before the first answer, the
            # mistake is the author's.
            if not self._functions.has_answered:
                raise CourseError(fault_of(error, {str(self._file): self._place})) from error
            what = f"{type(error).__name__}: {error}"
            stop = self._functions.stop(f"The example cannot continue with this result: {what}")
        finally:
            printed = self._functions.close()
        return Trace(self._stage.slug, self._stage.title, tuple(parts), stop, printed)

    def _traced(self, part: Any) -> TracedStep | TracedHeatmap | Curves | str:
        if isinstance(part, str):
            return part
        if isinstance(part, Step):
            return self._step(part)
        if isinstance(part, Heatmap):
            return traced_heatmap(part)
        if isinstance(part, Curves):
            return _curves(part)
        raise CourseError(
            f"{self._place}: trace yields {part!r}: yield a text, Step, Heatmap or Curves"
        )

    def _step(self, step: Step) -> TracedStep:
        shape = _shape(step.tensor)
        names, wanted = self._wanted(step.axes)
        misfit = ""
        if len(names) != len(shape) or any(
            size is not None and size != real for size, real in zip(wanted, shape, strict=True)
        ):
            known = " ".join(
                f"{name}={size}" if size is not None and name != "1" else name
                for name, size in zip(names, wanted, strict=True)
            )
            misfit = f"The axes should be {known or 'none'}, but the shape is {list(shape)}."
            names = ("",) * len(shape)
        else:
            self._sizes.update(zip(names, shape, strict=True))
        labels = {name: tuple(words) for name, words in step.labels.items()}
        return TracedStep(
            name=step.name,
            axes=tuple(
                Axis(name, size, found if len(found := labels.get(name, ())) == size else ())
                for name, size in zip(names, shape, strict=True)
            ),
            blocks=tuple(_blocks(step.tensor, shape)),
            says=step.says,
            misfit=misfit,
            same_as=self._same_as(step, shape),
            slug=self._functions.slug,
            compare=step.compare,
            behind=tuple(step.behind),
        )

    def _wanted(self, axes: str) -> tuple[tuple[str, ...], tuple[int | None, ...]]:
        """The names of the axes and their expected sizes, as far as these are known."""
        names: list[str] = []
        sizes: list[int | None] = []
        for word in axes.split():
            name, _, size = word.partition("=")
            if name == "1":
                size = name
            if size and not size.isdecimal():
                raise CourseError(f"{self._place}: '{word}' among the axes is not like 'H=2'")
            names.append(name)
            sizes.append(int(size) if size else self._sizes.get(name))
        return tuple(names), tuple(sizes)

    def _same_as(self, step: Step, shape: tuple[int, ...]) -> str:
        """The last earlier step with the same numbers in another shape."""
        if math.prod(shape) not in _COMPARED:
            return ""
        flat = step.tensor.reshape(-1).tolist()
        if any(isinstance(number, (bool, complex)) or number != number for number in flat):
            return ""
        flat.sort()
        before = [name for name, other, numbers in self._seen if other != shape and numbers == flat]
        self._seen.append((step.name, shape, flat))
        return before[-1] if before else ""


class NoPictureError(Exception):
    """A result cannot be drawn."""


def traced_heatmap(part: Heatmap) -> TracedHeatmap:
    """The heatmap as plain numbers. Raises NoPictureError if the shape does not fit."""
    shape = _shape(part.tensor)
    wanted = (len(part.panels), len(part.rows), len(part.columns))
    if shape != wanted:
        raise NoPictureError(
            f"The heatmap '{part.title}' needs the shape {list(wanted)}, but this is {list(shape)}."
        )
    return TracedHeatmap(
        title=part.title,
        panels=tuple(
            (name, _rows(panel.tolist()))
            for name, panel in zip(part.panels, part.tensor, strict=True)
        ),
        rows=tuple(part.rows),
        columns=tuple(part.columns),
        row_axis=part.row_axis,
        column_axis=part.column_axis,
    )


def _curves(part: Curves) -> Curves:
    """The curves with plain numbers. Raises NoPictureError for one that cannot be drawn."""

    def plain(name: str, numbers: Sequence[float]) -> list[float]:
        if len(numbers) != len(part.x) or not all(number > 0 for number in numbers):
            shown = ", ".join(str(number)[:20] for number in numbers)
            raise NoPictureError(
                f"The curve '{name}' needs {len(part.x)} numbers above 0, but these are {shown}."
            )
        return [float(number) for number in numbers]

    return replace(
        part,
        x=[float(number) for number in part.x],
        curves={name: plain(name, numbers) for name, numbers in part.curves.items()},
        guides={name: plain(name, numbers) for name, numbers in part.guides.items()},
    )


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(getattr(tensor, "shape", ()))


def _blocks(tensor: Any, shape: tuple[int, ...]) -> Iterator[Block]:
    if 0 in shape:
        return
    if not shape:
        yield Block((), ((tensor.tolist() if hasattr(tensor, "tolist") else tensor,),))
        return
    if len(shape) == 1:
        yield Block((), _rows([tensor[:_PLACES].tolist()]))
        return
    places = itertools.product(*(range(size) for size in shape[:-2]))
    for index in itertools.islice(places, _BLOCKS):
        yield Block(index, _rows(tensor[index][:_PLACES, :_PLACES].tolist()))


def _rows(nested: list[list[Number]]) -> Rows:
    return tuple(tuple(row) for row in nested)


@dataclass(eq=False)
class _Functions:
    """The functions of a stage and of all that it requires, each stage's in its own worker.

    It remembers the function that was called last.
    """

    _course: Course
    _stage: Stage
    _submission: Submission
    _interpreter: Interpreter
    _place: str
    _kept: dict[str, Loaded] | None
    _open: dict[str, _Watched] = field(default_factory=dict)
    _answers: dict[str, WorkerAnswers] = field(default_factory=dict)
    _asked: _Watched | None = None
    _name: str = ""

    def find(self, name: str) -> Callable[..., Any]:
        """The learner's function or class `name`. Raises CourseError if there is none."""
        for stage in (self._stage, *self._course.required(self._stage)):
            names = {entry.name for entry in stage.entry_points}
            if name in _OF_A_CHECK or name in names:  # whichever stage it is, they are the same
                under_check = self._under_check(stage)
                return getattr(RemoteSubmission(under_check), name)  # type: ignore[no-any-return]
        raise CourseError(f"{self._place}: neither the stage nor one that it requires has '{name}'")

    @property
    def slug(self) -> str:
        """The stage that was called last."""
        return self._asked.stage.slug if self._asked is not None else ""

    @property
    def has_answered(self) -> bool:
        """Whether any of the learner's functions has returned a result."""
        return any(stage.case.has_answered for stage in self._open.values())

    def ask(self, under_check: _Watched, name: str) -> None:
        """Remember the function that is called now."""
        self._asked, self._name = under_check, name

    def stop(self, message: str) -> Stop:
        """The end of the trace, in the function that was called last."""
        not_written = self._asked is not None and self._asked.case.not_written
        return Stop(self._name, self.slug, not_written, message)

    def close(self) -> str:
        """End or keep the workers; returns what the learner's code printed."""
        printed = [stage.close() for stage in self._open.values()]
        for slug, answers in self._answers.items():
            if self._kept is not None and answers.loaded is not None:
                self._kept[slug] = answers.loaded
        return "\n".join(filter(None, printed))

    def _under_check(self, stage: Stage) -> _Watched:
        if stage.slug not in self._open:
            keeps = self._kept is not None
            answers = self._answers[stage.slug] = WorkerAnswers(
                self._interpreter,
                Import(self._course, stage, self._submission, for_every_stage=keeps),
                loaded=self._kept.pop(stage.slug, None) if self._kept else None,
                believes=True,
            )
            self._open[stage.slug] = _Watched(stage, answers, self.ask)
            self._open[stage.slug].begin(_SEED)
        return self._open[stage.slug]


class _Watched(StageUnderCheck):
    """A stage that calls `ask` before each call of a function."""

    def __init__(
        self, stage: Stage, answers: WorkerAnswers, ask: Callable[[_Watched, str], None]
    ) -> None:
        super().__init__(stage, answers)
        self._ask = ask

    def need(self, name: str) -> None:
        self._ask(self, name)
        super().need(name)

    def request(self, frame: Frame) -> Frame:
        self._ask(self, self.case.last_call.partition("(")[0])
        return super().request(frame)


class _Submission:
    """The `submission` of a trace: `submission.f` is the learner's function `f`."""

    def __init__(self, find: Callable[[str], Callable[..., Any]]) -> None:
        self._find = find

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return self._find(name)
