"""Judges the learner's files at every save: joins files, keys, the engine and a screen."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue

from grader.engine import Engine, Request, with_engine
from grader.read.changes import changes
from grader.read.exercises import began_from, read_work, text_of
from grader.read.hints import read_hints
from grader.read.keys import DOWN, ESCAPE, PAGE_DOWN, PAGE_UP, UP
from grader.read.progress import recall, remember_results, update_progress
from grader.read.submission import read_submission
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, KitError, ProgressError, SubmissionFileError
from grader.types.progress import Progress
from grader.types.report import Report, Status
from grader.types.submission import Submission
from grader.types.watching import (
    Difference,
    Every,
    HintShown,
    Panel,
    Phase,
    Standing,
    Success,
    Watching,
)
from grader.types.workspace import Workspace

_TICK = 0.25  # seconds after which the screen is drawn anew, should its size have changed
_PAGE = 10  # lines


@dataclass(frozen=True)
class Pressed:
    """A key."""

    key: str


@dataclass(frozen=True)
class _Saved:
    names: frozenset[str]


@dataclass(frozen=True)
class _Judged:
    job: int
    submission: Submission
    report: Report
    seconds: float


@dataclass(frozen=True)
class _Failed:
    job: int
    error: Exception


_Event = Pressed | _Saved | _Judged | _Failed


class Watch:
    """One learner's watch over their files, from `run` until q or Ctrl-C.

    The inputs of the checks follow `seed` until r is pressed. `show` is told of every new state,
    and every `_TICK` seconds of the same; `edit` opens a file at a line and returns what went
    wrong, if anything. Keys arrive by `press`, from any thread.
    """

    def __init__(
        self,
        workspace: Workspace,
        stage: Stage | None,
        device: str,
        seed: int,
        show: Callable[[Watching], None],
        edit: Callable[[Path, int], str],
    ) -> None:
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._judge = _Judge(workspace, device, seed, self._events.put)
        self._workspace = workspace
        self._show = show
        self._edit = edit
        self._asked = stage
        self._began = time.perf_counter()

    def press(self, key: str) -> None:
        """A key was pressed."""
        self._events.put(Pressed(key))

    def run(self) -> Watching:
        """Judge every save until q is pressed; the last state. Raises KitError as `grade` does."""
        course = self._workspace.course
        known = recall(self._workspace.root)
        progress, notice = known.progress, known.note
        stage = self._asked or _first_unfinished(course, progress) or course.stages[-1]
        self._state = Watching(self._workspace, progress, stage, notice=notice)
        self._show(self._state)
        stop = threading.Event()
        files = threading.Thread(target=self._follow_files, args=(stop,), daemon=True)
        files.start()
        self._judge.submit(stage)
        try:
            while self._step():
                self._show(self._state)
        except KeyboardInterrupt:
            pass
        finally:
            stop.set()
            self._judge.close()
        return self._state

    def _follow_files(self, stop: threading.Event) -> None:
        for names in changes(self._workspace.exercises, stop):
            self._events.put(_Saved(names))

    def _step(self) -> bool:
        """Wait for one event and answer it; whether to go on."""
        try:
            event = self._events.get(timeout=_TICK)
        except Empty:
            if self._state.phase is Phase.JUDGING:
                waited = time.perf_counter() - self._began
                self._state = replace(self._state, seconds=waited)
            return True
        if isinstance(event, Pressed):
            return self._pressed(event.key)
        if isinstance(event, _Saved):
            self._saved(event.names)
        elif event.job == self._judge.latest:
            if isinstance(event, _Judged):
                self._judged(event)
            elif isinstance(event.error, SubmissionFileError):
                self._state = replace(
                    self._state, phase=Phase.WAITING, notice=str(event.error), report=None
                )
            else:
                raise event.error
        return True

    def _saved(self, names: frozenset[str]) -> None:
        """Judge the stage whose file was saved; for any other file the one that is shown."""
        touched = [stage for stage in self._workspace.course.stages if stage.file_name in names]
        stage = self._state.stage if self._state.stage in touched or not touched else touched[0]
        state = self._state.at(stage)
        self._state = replace(state, success=None, notice="", panel=None)
        self._begin()

    def _begin(self) -> None:
        self._began = time.perf_counter()
        if self._state.phase is not Phase.STARTING:
            self._state = replace(self._state, phase=Phase.JUDGING, seconds=0.0)
        self._judge.submit(self._state.stage)

    def _judged(self, event: _Judged) -> None:
        state = replace(
            self._state,
            phase=Phase.WAITING,
            report=event.report,
            seconds=event.seconds,
            panel=None,
            scroll=0,
        )
        self._state = state
        self._show(state)  # before anything is written to a disk that may be slow
        (result,) = event.report.stages
        if state.stage.file_name not in event.submission.files:
            state = replace(state, notice=_gone(state.stage))
        try:
            found = remember_results(self._workspace.root, [result], event.submission)
            state = replace(state, progress=found.progress, notice=found.note or state.notice)
        except ProgressError as error:
            here = state.progress.with_result(result, "", "")
            state = replace(state, progress=here, notice=str(error))
        self._state = state
        if result.status is Status.PASSED:
            learnt = _learnt(state.stage)
            following = _first_unfinished(self._workspace.course, state.progress)
            state = replace(state, success=Success(state.stage, result.score, learnt))
            self._state = state.at(following) if following is not None else state
            if following is not None:
                self._begin()

    def _pressed(self, key: str) -> bool:
        state = self._state
        if key in ("q", "Q"):
            return False
        if key == ESCAPE:
            self._state = state.showing(None)
        elif key == "h":
            self._state = self._hinted()
        elif key == "a":
            self._state = state.showing(None if isinstance(state.panel, Every) else Every())
        elif key == "l":
            self._state = state.showing(None if isinstance(state.panel, Standing) else Standing())
        elif key == "d":
            shown = isinstance(state.panel, Difference)
            self._state = state.showing(None) if shown else self._compared()
        elif key == "r":
            self._judge.draw_anew()
            self._begin()
        elif key == "e" and not self._workspace.file(state.stage).exists():
            self._state = replace(state, notice=_gone(state.stage))
        elif key == "e":
            trouble = self._edit(self._workspace.file(state.stage), self._line())
            self._state = replace(state, notice=trouble)
        else:
            step = {
                UP: -1,
                "k": -1,
                DOWN: 1,
                "j": 1,
                PAGE_UP: -_PAGE,
                PAGE_DOWN: _PAGE,
                " ": _PAGE,
            }
            self._state = replace(state, scroll=max(0, state.scroll + step.get(key, 0)))
        return True

    def _hinted(self) -> Watching:
        state, stage = self._state, self._state.stage
        hints = read_hints(stage)
        known = state.progress.stage(stage.slug)
        number = known.next_rung(len(hints.rungs))
        advice = known.advice
        advised = advice is not None and not advice.given and advice.rung == number
        progress, notice = state.progress.with_hint(stage.slug, number), ""
        try:
            found = update_progress(
                self._workspace.root, lambda now: now.with_hint(stage.slug, number)
            )
            progress, notice = found.progress, found.note
        except ProgressError as error:
            notice = str(error)
        panel: Panel = HintShown(hints, number, advised)
        return replace(state.showing(panel), progress=progress, notice=notice)

    def _compared(self) -> Watching:
        state, stage = self._state, self._state.stage
        name = stage.file_name
        try:
            work = read_work(self._workspace.file(stage))
            now = None if work is None else text_of(work)
            stub = began_from(self._workspace, stage)
        except KitError as error:
            return replace(state, notice=str(error))
        if work is None:
            return replace(state, notice=_gone(stage))
        if now is None:
            return replace(state, notice=f"{name}: is not UTF-8: have your editor save it so")
        return state.showing(Difference(name, stub, now))

    def _line(self) -> int:
        """The line of the learner's file to open the editor at: where it is not written yet."""
        with suppress(OSError):
            text = self._workspace.file(self._state.stage).read_text("utf-8", "replace")
            for number, line in enumerate(text.splitlines(), start=1):
                if line.lstrip().startswith("raise NotImplementedError"):
                    return number
        return 1


class _Judge:
    """The engine in a thread of its own; only the job submitted last counts."""

    def __init__(
        self,
        workspace: Workspace,
        device: str,
        seed: int,
        post: Callable[[_Judged | _Failed], None],
    ) -> None:
        self._workspace = workspace
        self._device = device
        self._post = post
        self._seed = seed
        self._wake = threading.Condition()
        self._waiting: tuple[int, Stage] | None = None
        self._closed = False
        self._engine: Engine | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.latest = 0

    def draw_anew(self) -> None:
        """Let the checks draw other inputs from now on; until then they are the same every time."""
        self._seed = secrets.randbelow(1 << 31)

    def submit(self, stage: Stage) -> None:
        """Judge `stage` as the files are now; whatever is under way is given up."""
        with self._wake:
            self.latest += 1
            self._waiting = (self.latest, stage)
            self._wake.notify()
            if self._engine is not None:
                self._engine.cancel()
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """End the thread and the processes it has started."""
        with self._wake:
            self._closed = True
            self._wake.notify()
            if self._engine is not None:
                self._engine.cancel()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        course = self._workspace.course
        try:
            with_engine(course, course.stages, self._device, self._serve)
        except Exception as error:  # noqa: BLE001 - it is raised where the learner is told
            self._post(_Failed(self.latest, error))

    def _serve(self, engine: Engine) -> None:
        from grader.run.answers import Cancelled

        self._engine = engine
        while (job := self._next()) is not None:
            number, stage = job
            start = time.perf_counter()
            try:
                submission = read_submission(self._workspace.exercises)
                report = engine.grade(Request(submission, (stage,), self._seed))
            except Cancelled:
                continue
            except SubmissionFileError as error:
                self._post(_Failed(number, error))
                continue
            self._post(_Judged(number, submission, report, time.perf_counter() - start))
            engine.interpreter.prepare()

    def _next(self) -> tuple[int, Stage] | None:
        with self._wake:
            while self._waiting is None and not self._closed:
                self._wake.wait()
            job, self._waiting = self._waiting, None
            return None if self._closed else job


def _first_unfinished(course: Course, progress: Progress) -> Stage | None:
    """The first core stage that has not passed, then the first bonus stage."""
    stages = sorted(course.stages, key=lambda stage: stage.bonus)
    unfinished = (s for s in stages if progress.stage(s.slug).status is not Status.PASSED)
    return next(unfinished, None)


def _gone(stage: Stage) -> str:
    return f"{stage.file_name} is not there: `grade reset {stage.slug}` puts it back"


def _learnt(stage: Stage) -> str:
    try:
        return read_hints(stage).learnt
    except CourseError:
        return ""
