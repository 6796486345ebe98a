"""Trains an author's program with the learner's code, both in one locked worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from grader.learning.finale.programs import Program
from grader.learning.pictures.tracer import NoPictureError, traced_heatmap
from grader.learning.pictures.types import TracedHeatmap
from grader.run.answers import WorkerAnswers
from grader.run.device import interpreter_on
from grader.run.failures import WrongReturn
from grader.run.importing import Import
from grader.run.under_check import StageUnderCheck
from grader.run.value_words import described
from grader.run.worker.packing import Handle
from grader.run.workers import Interpreter
from grader.tracing import Heatmap
from grader.types.course import Course
from grader.types.submission import Submission

_CALL_SECONDS, _ALL_SECONDS = 60, 1800  # for one call; for all of a training
_STEPS = 20  # of one call: less than a second
_MEAN = 50  # steps whose mean loss is shown
_LARGEST = 1e30  # number that is shown: so that sums and curves of such numbers are numbers too
_NAMED = 20  # scores, and guides, that are shown


@dataclass(frozen=True)
class Run:
    """What a training has come to; `without` is the part that is missing, "" if none.

    `losses` has one number for each step. `scores` and `guides` are the program's own numbers by
    name, the guides in the unit of the losses. The heatmap shows one panel before and after.
    """

    program: Program
    without: str
    losses: tuple[float, ...]
    scores: dict[str, float]
    guides: dict[str, float]
    heatmap: TracedHeatmap | None
    seconds: float

    @property
    def name(self) -> str:
        """Its name in the names of files."""
        return f"{self.program.name}{f'-without-{self.without}' if self.without else ''}"

    @property
    def is_whole(self) -> bool:
        """Whether it was trained to the end."""
        return len(self.losses) == self.program.steps


@dataclass(frozen=True)
class Moment:
    """A moment of a training. `loss` is the mean of the last losses, None at the start and the end.

    `sample` is what the model writes now, "" if it was not asked. A moment that `counts` is worth a
    line of its own.
    """

    step: int
    loss: float | None
    sample: str = ""
    counts: bool = False


class Trainee:
    """A program's object in the worker. Every method raises AnswerError if it gives no answer.

    Only the learner's process says what they return, which is good enough to show.
    """

    def __init__(self, under_check: StageUnderCheck, program: Program, *args: Any) -> None:
        self._stage = under_check
        for entry in program.stage.entry_points:
            under_check.need(entry.name)
        target = {"given": f"{program.source}\nTEXT = {program.text!r}\n", "name": program.made_by}
        made = self._call(target, program.made_by, *args)
        if not isinstance(made, Handle):
            raise WrongReturn(f"The program came back as {described(made)}")
        self._number = made.id

    def steps(self, number: int) -> list[float]:
        """Train for a number of steps; returns their losses, all above 0 and none of them huge."""
        losses = self._ask("steps", number)
        if not isinstance(losses, list) or len(losses) != number:
            raise WrongReturn(f"steps({number}) returned {described(losses)}, not {number} losses")
        if not all(isinstance(loss, float) and 0 < loss <= _LARGEST for loss in losses):
            raise WrongReturn("The loss became 0, huge or no number, so nothing more is learnt.")
        return losses

    def numbers(self, method: str) -> dict[str, float]:
        """The named numbers that a method returns, without any that cannot be shown."""
        found = self._ask(method)
        if not isinstance(found, dict):
            raise WrongReturn(f"{method}() returned {described(found)}, not numbers by name")
        named = islice(found.items(), _NAMED)
        numbers = {str(name): x for name, x in named if isinstance(x, (int, float))}
        return {name: float(x) for name, x in numbers.items() if abs(x) <= _LARGEST}

    def sample(self) -> str:
        """What the model writes now."""
        return str(self._ask("sample"))

    def heatmap(self) -> tuple[TracedHeatmap, int] | None:
        """A heatmap and the number of its panel that matters; None if the program has none."""
        answer = self._ask("heatmap")
        if answer is None:
            return None
        try:
            facts = dict(answer)
            fit = list(facts.pop("fit"))
            drawn = traced_heatmap(Heatmap(**facts))
            best, _ = max(enumerate(fit[: len(drawn.panels)]), key=lambda pair: pair[1])
            return drawn, best
        except (AttributeError, NoPictureError, TypeError, ValueError, KeyError) as error:
            raise WrongReturn(f"The heatmap cannot be drawn: {error}") from None

    def _ask(self, method: str, *args: Any) -> Any:
        return self._call({"object": self._number, "method": method}, method, *args)

    def _call(self, target: dict[str, Any], name: str, *args: Any) -> Any:
        return self._stage.call(target, name, args, {}, code="")


@contextmanager
def studio(course: Course, device: str) -> Iterator[Studio]:
    """Where trainings take place, one after the other. Raises KitError."""
    limits = replace(
        course.limits,
        call_seconds=_CALL_SECONDS,
        stage_seconds=_ALL_SECONDS,
        cpu_seconds=_ALL_SECONDS,
    )
    patient = replace(course, limits=limits)
    with interpreter_on(course, limits, device) as (interpreter, chosen):
        yield Studio(patient, chosen, interpreter)


@dataclass(frozen=True)
class Studio:
    """The interpreter whose workers train, and the device."""

    course: Course
    device: str
    interpreter: Interpreter

    @contextmanager
    def trainee(
        self, program: Program, submission: Submission, seed: int, without: str
    ) -> Iterator[Trainee]:
        """The program with the learner's code, ready to train. Raises AnswerError."""
        answers = WorkerAnswers(self.interpreter, Import(self.course, program.stage, submission))
        under_check = StageUnderCheck(program.stage, answers)
        try:
            under_check.begin(seed)
            yield Trainee(under_check, program, seed, without, self.device)
        finally:
            under_check.close()


def train(
    trainee: Trainee,
    program: Program,
    without: str,
    show: Callable[[Moment], None],
    is_over: Callable[[], bool] = lambda: False,
) -> Run:
    """Train to the end, or until `is_over`; `show` is called again and again. Raises AnswerError.

    It asks for few steps at a time, so that it can stop soon and keep what was learnt.
    """
    began = time.monotonic()
    start = trainee.heatmap()
    losses: list[float] = []
    show(Moment(0, None, trainee.sample()))
    while len(losses) < program.steps and not is_over():
        losses += trainee.steps(min(_STEPS, program.steps - len(losses)))
        eighths, rest = divmod(8 * len(losses), program.steps)
        is_eighth = rest < 8 * _STEPS
        meanwhile = trainee.sample() if is_eighth and eighths == 2 else ""
        recent = losses[-_MEAN:]
        show(Moment(len(losses), sum(recent) / len(recent), meanwhile, is_eighth))
    show(Moment(len(losses), None, trainee.sample()))
    end = trainee.heatmap()
    return Run(
        program,
        without,
        tuple(losses),
        trainee.numbers("scores"),
        trainee.numbers("guides"),
        None if start is None or end is None else _before_and_after(start[0], *end),
        time.monotonic() - began,
    )


def _before_and_after(before: TracedHeatmap, after: TracedHeatmap, panel: int) -> TracedHeatmap:
    """The same panel of two heatmaps."""
    panels = [(word, each.panels[panel]) for word, each in (("before", before), ("after", after))]
    named = tuple((f"{name}, {word}", rows) for word, (name, rows) in panels)
    return replace(after, panels=named)
