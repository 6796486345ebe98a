"""Runs one stage's checks for its author: in this process, or in a worker like a learner's code."""

from __future__ import annotations

import gc
import importlib
import io
import itertools
import os
import re
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.authoring.verify.memory import Memory
from grader.read.faults import fault_of, undefined
from grader.run.facts import StageFacts
from grader.run.importing import Import
from grader.run.workers import Interpreter
from grader.types.course import Course, Stage
from grader.types.errors import no_library
from grader.types.report import StageResult
from grader.types.submission import Submission

if TYPE_CHECKING:
    from grader.learning.pictures.types import Trace
    from grader.run.session import Checks

Find = Callable[[str], Any]
_FEW = 3
_RUNS = 25  # after which what was frozen is collected, too: it may hold hundreds of megabytes
_BY_FOLDER = re.compile(r"No module named '(exercises|solutions)\b|attempted relative import")


class Hangs(Exception):
    """A call of an author's function did not end in time."""


@dataclass(frozen=True)
class Seeds:
    """The seeds with which a stage's answers run.

    The solution runs with `all` of them, and with a `few` both here and in a worker; `answers` are
    for each other answer.
    """

    all: Sequence[int]
    few: Sequence[int]
    answers: Sequence[int]

    @classmethod
    def of(cls, stage: Stage, seeds: Sequence[int], per_answer: int) -> Seeds:
        """The seeds of one stage: a stage of learner's tests takes long and draws little."""
        if stage.fixture:
            return cls(seeds[:_FEW], seeds[:1], seeds[:1])
        return cls(seeds, seeds[:_FEW], seeds[:per_answer])

    @property
    def first(self) -> int:
        """The seed of a single run."""
        return self.all[0]


@dataclass(frozen=True)
class CheckRuns:
    """The runs of one stage's checks, on the CPU."""

    course: Course
    stage: Stage
    _interpreter: Interpreter
    checks: Checks
    memory: Memory = field(default_factory=Memory)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def known(self, who: Hashable, find: Find, seed: int, **how: Any) -> StageFacts:
        """As `local`, but an implementation that is remembered as `who` does not run again."""
        return self.memory.of((who, seed, *how.items()), lambda: self.local(find, seed, **how))

    def local(self, find: Find, seed: int, **how: Any) -> StageFacts:
        """The facts of a run in this process; `how` is as for Checks.run.

        Raises Hangs, and Stopped if a check hangs.
        """
        from grader.run.local_answers import LocalAnswers
        from grader.run.stopping import stopped_after
        from grader.run.under_check import StageUnderCheck

        if next(self._numbers) % _RUNS == 0:
            gc.unfreeze()
        gc.collect()
        gc.freeze()  # checks that measure collect garbage often: only what comes from now on
        limits = self.course.limits
        answers = LocalAnswers(find, limits)
        under_check = StageUnderCheck(self.stage, answers)
        with silence(), stopped_after(limits.stage_seconds):
            facts = self.checks.run(self.stage, under_check, seed, "cpu", **how)
        if answers.hangs:
            raise Hangs(f"{answers.hangs} (seed {seed})")
        return facts

    def graded(self, submission: Submission, seed: int) -> StageResult:
        """The verdict on a submission that a worker runs, remembered by its name."""
        from grader.judge.verdict import judge_stage

        def judged() -> StageResult:
            return judge_stage(self.stage, self.remote(submission, seed))

        return self.memory.of((submission.name, "in a worker", seed), judged)

    def trace(self, file: Path, submission: Submission) -> Trace:
        """What the example in an author's file shows of a submission. Raises CourseError.

        The page of `grade explore` is as it starts.
        """
        from grader.learning.explore.example import read_explore, start_of
        from grader.learning.pictures.tracer import ExampleRun, TraceFunction, read_trace

        if file == self.stage.explore_file:
            page = read_explore(self.stage)
            starts = {control.name: start_of(control) for control in page.controls}
            function: TraceFunction = partial(page.function, **starts)
        else:
            function = read_trace(self.stage, file)
        run = ExampleRun(self.course, self.stage, submission, self._interpreter, file)
        return run.trace(function)

    def remote(self, submission: Submission, seed: int) -> StageFacts:
        """The facts of a run in a worker."""
        from grader.judge.blame import with_calls
        from grader.run.answers import WorkerAnswers
        from grader.run.reader import Reader, SourceReader
        from grader.run.under_check import StageUnderCheck

        stage, course = self.stage, self.course
        answers = WorkerAnswers(self._interpreter, Import(course, stage, submission))
        with silence():  # what a check prints
            facts = self.checks.run(stage, StageUnderCheck(stage, answers), seed, "cpu")
        return with_calls(facts, SourceReader(Reader(None), submission).calls(course, stage))


def import_fault(course: Course, stage: Stage, files: Mapping[str, bytes], place: str) -> str:
    """Why the file of a stage, called `place`, is no answer; "" if it is one.

    It must define every entry point. Among these `files` it finds those of other stages.
    """
    from grader.run.solutions import at_hand
    from grader.run.stopping import stopped_after

    places = {each.file_name: each.place(each.solution_file) for each in course.stages}
    places[stage.file_name] = place
    try:
        with stopped_after(course.limits.load_seconds), at_hand(files, stage) as find:
            for entry in stage.entry_points:
                find(entry.name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - every fault of an author's file is reported
        fault = fault_of(error, places)
        if not fault.startswith(tuple(places.values())):
            fault = f"{place}: {undefined(error) if isinstance(error, AttributeError) else fault}"
        if isinstance(error, ImportError) and _BY_FOLDER.match(str(error)):
            fault += ": write `from STAGE import ...`, without the folder"
        if isinstance(error, ImportError) and error.name in course.renamed:
            fault += f": it is now {course.renamed[error.name]}"
        return fault
    return ""


def import_libraries(course: Course) -> None:
    """Import what the checks need; more than one thread of torch would only wait for each other.

    A process that is forked later has no other thread. Raises CourseError if a library is missing.
    """
    for name in course.preload:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - a library that is broken may raise anything
            raise no_library(name, f"{type(error).__name__}: {error}") from None
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@contextmanager
def silence() -> Iterator[None]:
    """Suppress all output in the block, also that of C libraries."""
    sys.stdout.flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number, _ in kept:
            os.dup2(nowhere, number)
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
