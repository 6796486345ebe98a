"""The engine of `grade watch`, in a thread of its own: only the last job that was given counts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from grader.engine import Engine, Request, with_engine
from grader.learning.pictures.types import Trace
from grader.types.course import Stage
from grader.types.report import Report
from grader.types.seed import fresh_seed
from grader.types.submission import Submission
from grader.types.workspace import Workspace

_PLACE_SECONDS = 10.0  # the verdict is shown meanwhile, and a save ends the search
_LOOK_SECONDS = 0.25  # between two looks at whether the thread has ended


@dataclass(frozen=True)
class Judged:
    """A verdict. If it `may_place` a mistake, the search for its place is still to come.

    If it `is_placed`, it is the same verdict after that search.
    """

    job: int
    stage: Stage
    report: Report
    seconds: float
    may_place: bool = False
    is_placed: bool = False


@dataclass(frozen=True)
class Traced:
    """A stage's example, run on the learner's code and on the solution."""

    job: int
    stage: Stage
    trace: Trace
    right: Trace | None


@dataclass(frozen=True)
class Tried:
    """How many trials of the learner's tests are done, of how many."""

    job: int
    stage: Stage
    trials: tuple[int, int]


class Work(Enum):
    """What to do with a stage: grade it, find the place of its mistake, or run its example."""

    VERDICT = 0
    PLACE = 1
    TRACE = 2


@dataclass(frozen=True)
class _Job:
    number: int
    stage: Stage
    submission: Submission
    work: Work


@dataclass(eq=False)
class Judge:
    """The engine in its own thread; only the job submitted last counts."""

    _workspace: Workspace
    _device: str
    _seed: int
    _post: Callable[[Judged | Traced | Tried | Exception], None]

    def __post_init__(self) -> None:
        self._wake = threading.Condition()
        self._waiting: _Job | None = None
        self._running = 0  # the number of a job
        self._closed = False
        self._engine: Engine | None = None
        self._right: dict[Stage, Trace] = {}
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.latest = 0

    def change_seed(self) -> None:
        """Use other random inputs from now on; until then they are the same every time."""
        self._seed = fresh_seed()

    def submit(self, stage: Stage, submission: Submission, work: Work = Work.VERDICT) -> None:
        """Do this work on `stage` of `submission`, and cancel the running job."""
        self._replace((stage, submission, work))
        if self._thread.ident is None:
            self._thread.start()

    def cancel(self) -> None:
        """Cancel the running job."""
        self._replace(None)

    def cancel_again(self) -> None:
        """Cancel an older job that had only just started when `cancel` was called."""
        with self._wake:
            if self._engine is not None and self._running != self.latest:
                self._engine.cancel()

    def close(self) -> None:
        """End the thread and its processes."""
        self._closed = True
        self.cancel()
        while self._thread.is_alive():
            self.cancel_again()
            self._thread.join(_LOOK_SECONDS)

    def _replace(self, work: tuple[Stage, Submission, Work] | None) -> None:
        with self._wake:
            self.latest += 1
            self._waiting = None if work is None else _Job(self.latest, *work)
            self._wake.notify()
            if self._engine is not None:
                self._engine.cancel()

    def _work(self) -> None:
        course = self._workspace.course
        try:
            with_engine(course, course.stages, self._device, self._serve)
        except Exception as error:  # noqa: BLE001 - the main thread raises it again
            self._post(error)

    def _serve(self, engine: Engine) -> None:
        from grader.run.failures import Cancelled

        self._engine = engine
        while (job := self._next()) is not None:
            with suppress(Cancelled):
                self._post(self._done(engine, job))
                engine.interpreter.prepare()
                engine.rehearse((job.stage,), self._seed, self._is_idle)

    def _is_idle(self) -> bool:
        return self._waiting is None and not self._closed

    def _done(self, engine: Engine, job: _Job) -> Judged | Traced:
        """The outcome of a job. Raises Cancelled."""
        if job.work is Work.TRACE:
            return self._trace(engine, job)
        start = time.perf_counter()
        request = Request(job.submission, (job.stage,), self._seed)
        engine.tell = lambda *trials: self._post(Tried(job.number, job.stage, trials))
        report = engine.grade_begun(request)
        may_place = engine.may_place(report)
        seconds = time.perf_counter() - start
        if job.work is Work.PLACE:
            report = engine.with_place(request, report, _PLACE_SECONDS)
            return Judged(job.number, job.stage, report, seconds, is_placed=True)
        return Judged(job.number, job.stage, report, seconds, may_place)

    def _trace(self, engine: Engine, job: _Job) -> Traced:
        from grader.learning.pictures.tracer import right_trace, trace

        course, interpreter = self._workspace.course, engine.interpreter
        found = trace(course, job.stage, job.submission, interpreter)
        right = self._right.get(job.stage) or right_trace(course, found, interpreter)
        if right is not None:
            self._right[job.stage] = right
        return Traced(job.number, job.stage, found, right)

    def _next(self) -> _Job | None:
        with self._wake:
            while self._waiting is None and not self._closed:
                self._wake.wait()
            job, self._waiting = self._waiting, None
            if job is None or self._closed:
                return None
            self._running = job.number
            return job
