"""Grades the learner's files at every save: connects files, keys, the engine and a screen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from grader.learning.hints.ladder import open_hints, open_hints_if_any
from grader.learning.hints.turn import next_turn
from grader.learning.watch.changes import Seen, changed_files, changes, see
from grader.learning.watch.judge import Judge, Judged, Traced, Tried, Work
from grader.learning.watch.keys import DOWN, ESCAPE, PAGE_DOWN, PAGE_UP, UP
from grader.learning.watch.state import (
    DiffShown,
    Every,
    HintShown,
    KeysShown,
    NotesShown,
    Panel,
    Phase,
    Standing,
    Success,
    TraceShown,
    Watching,
)
from grader.learning.workspace.exercises import began_from, read_text
from grader.read.dependencies import course_digest, text_digests
from grader.read.kept import Kept
from grader.read.progress import recall, remember_results, update_progress
from grader.read.workspace import in_turn
from grader.types.course import Course, Stage
from grader.types.errors import KitError, ProgressError
from grader.types.progress import Progress
from grader.types.report import StageResult, Status
from grader.types.submission import Submission
from grader.types.workspace import Workspace

_TICK = 0.25  # seconds between two redraws, which follow changes of the terminal's size
_PAGE = 10  # lines
_COURSE_LOOK = 2.0  # seconds between two looks at whether the course has changed


class Watch:
    """One learner's watch over their files, from `run` until q or Ctrl-C.

    After every save it grades the shown stage first, then every other stage whose verdict is not
    on the current text; until then such a verdict does not count. The checks' inputs come from
    `seed` until r is pressed. It calls `show` with every new state, and with the same state every
    `_TICK` seconds; `edit` opens a file at a line and returns what went wrong, or "". Keys arrive
    through `press`, from any thread.
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
        # What to do next, in the thread that runs us.
        self._events: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._judge = Judge(
            workspace, device, seed, lambda news: self._events.put(partial(self._learn, news))
        )
        self._workspace = workspace
        self._kept = Kept(workspace.root, workspace.course, device)
        self._show = show
        self._edit = edit
        self._asked = stage
        self._began = self._looked = time.perf_counter()
        self._is_over = self._moves_on = False
        self._verdicts: dict[Stage, tuple[str, Judged]] = {}  # with the digests of their texts
        self._traced: dict[Stage, TraceShown] = {}

    def press(self, key: str) -> None:
        """A key was pressed."""
        self._events.put(partial(self._pressed, key))

    def run(self) -> Watching:
        """Grade every save until q is pressed; returns the last state. Raises KitError."""
        workspace, course = self._workspace, self._workspace.course
        self._course_digest = course_digest(course)
        self._look(see(workspace.exercises))
        found = recall(workspace.root)
        self._known = found.progress
        progress = self._known.of(self._texts)
        stage = self._asked or _first_unfinished(course, progress) or course.stages[-1]
        self._state = Watching(workspace, progress, stage, notice=found.note)
        self._show(self._state)
        stop = threading.Event()
        threading.Thread(target=self._follow_files, args=(self._seen, stop), daemon=True).start()
        self._begin()
        try:
            while self._step():
                self._show(self._state)
        except KeyboardInterrupt:
            pass
        finally:
            stop.set()
            self._judge.close()
        return self._state

    def _follow_files(self, before: Seen, stop: threading.Event) -> None:
        for seen in changes(self._workspace.exercises, before, stop):
            self._events.put(partial(self._saved, seen))

    def _look(self, seen: Seen) -> None:
        """Take the contents of the learner's folder as the current text."""
        course, self._seen = self._workspace.course, seen
        self._texts: Mapping[str, str] = {}
        if isinstance(seen, Submission):
            self._texts = text_digests(course, seen, self._course_digest)

    @property
    def _submission(self) -> Submission:
        """The submission that the latest job grades."""
        assert isinstance(self._seen, Submission)
        return self._seen

    def _step(self) -> bool:
        """Wait for one event and handle it; returns whether to continue."""
        try:
            handle = self._events.get(timeout=_TICK)
        except Empty:
            handle = self._waited
        handle()
        return not self._is_over

    def _learn(self, news: Judged | Traced | Tried | Exception) -> None:
        """Take what the engine found, unless there is a newer job. Raises what broke the engine."""
        if isinstance(news, Exception):
            raise news
        if news.job != self._judge.latest:
            return
        if isinstance(news, Judged):
            (self._placed if news.is_placed else self._judged)(news)
        elif isinstance(news, Traced):
            self._show_trace(news)
        elif news.stage == self._state.stage:
            self._state = replace(self._state, trials=news.trials)

    def _waited(self) -> None:
        """Handle a moment without events. Raises KitError if the course has changed."""
        self._judge.cancel_again()
        now = time.perf_counter()
        if self._state.phase is Phase.JUDGING:
            self._state = replace(self._state, seconds=now - self._began)
        elif now - self._looked > _COURSE_LOOK:
            self._looked = now
            if course_digest(self._workspace.course) != self._course_digest:
                raise KitError("the course has changed: type `grade watch` again to continue")

    def _saved(self, seen: Seen) -> None:
        """Move to the stage whose file was saved, if it is one; grade again."""
        names = changed_files(self._seen, seen)
        self._look(seen)
        touched = [stage for stage in self._workspace.course.stages if stage.file_name in names]
        stage = self._state.stage if self._state.stage in touched or not touched else touched[0]
        progress = self._known.of(self._texts)
        state = self._state.at(stage)
        panel = _kept(state.panel)
        self._state = replace(state, progress=progress, success=None, notice="", panel=panel)
        self._begin()

    def _begin(self) -> None:
        """Grade the stage that is shown."""
        self._began = time.perf_counter()
        self._moves_on = False
        self._state = replace(self._state, trials=None)
        if isinstance(self._seen, Submission):
            if self._state.phase is not Phase.STARTING:
                self._state = replace(self._state, phase=Phase.JUDGING, seconds=0.0)
            self._judge.submit(self._state.stage, self._seen)
        else:
            self._judge.cancel()
            self._state = replace(
                self._state, phase=Phase.WAITING, notice=str(self._seen), report=None
            )

    def _judged(self, event: Judged) -> None:
        (result,), stage = event.report.stages, event.stage
        text = self._texts[stage.slug]
        self._verdicts[stage] = text, event
        digest = self._submission.digest(stage.file_name)
        self._know(self._known.with_result(result, digest, "", text))
        if stage == self._state.stage:
            self._tell(event)
            if result.status is Status.PASSED:
                hints = open_hints_if_any(stage)
                success = Success(stage, result.score, hints.learnt if hints else "")
                self._state = replace(self._state, success=success)
                self._moves_on = True
            self._show(self._state)  # before writing to the disk, which may be slow
        self._remember(result)
        self._kept.keep(event.report, self._texts)
        self._go_on()

    def _placed(self, event: Judged) -> None:
        """Add the place of the mistake, if it was found, to the verdict that is shown."""
        text, verdict = self._verdicts[event.stage]
        self._verdicts[event.stage] = text, replace(verdict, report=event.report, may_place=False)
        if event.stage == self._state.stage:
            self._state = replace(self._state, report=event.report)
            self._show(self._state)
        self._remember(event.report.stages[0])

    def _go_on(self) -> None:
        """Grade what is not graded yet; after a stage passes, move to the next one.

        When all is graded, look for the place of the mistake in the stage that is shown.
        """
        progress = self._state.progress
        stages = in_turn(self._workspace.course, progress)
        following = _first_unfinished(self._workspace.course, progress)
        if self._moves_on and following and progress.stage(following.slug).status is not None:
            self._state = self._state.at(following)
            text, verdict = self._verdicts.get(following, ("", None))
            if verdict is None or text != self._texts[following.slug]:
                self._begin()
                return
            self._moves_on = False
            self._tell(verdict)
        unjudged = (stage for stage in stages if progress.stage(stage.slug).status is None)
        shown = self._verdicts.get(self._state.stage)
        if self._must_trace():
            self._judge.submit(self._state.stage, self._submission, Work.TRACE)
        elif stage := next(unjudged, None):
            self._judge.submit(stage, self._submission)
        elif shown and shown[1].may_place and shown[0] == self._texts[self._state.stage.slug]:
            self._judge.submit(self._state.stage, self._submission, Work.PLACE)

    def _must_trace(self) -> bool:
        """Whether the learner looks at the example, and it was not run on the current text."""
        panel, stage = self._state.panel, self._state.stage
        return isinstance(panel, TraceShown) and panel.text != self._texts[stage.slug]

    def _show_trace(self, event: Traced) -> None:
        old = self._traced.get(event.stage, TraceShown())
        shown = TraceShown(self._texts[event.stage.slug], event.trace, event.right, old.trace)
        self._traced[event.stage] = shown
        if isinstance(self._state.panel, TraceShown) and event.stage == self._state.stage:
            self._state = replace(self._state, panel=shown)
        self._go_on()

    def _tell(self, verdict: Judged) -> None:
        """Show a verdict on the current stage."""
        state, seen, name = self._state, self._submission, self._state.stage.file_name
        is_there = name in seen.files or name in seen.links or seen.refused
        self._state = replace(
            state,
            phase=Phase.WAITING,
            report=verdict.report,
            seconds=verdict.seconds,
            trials=None,
            notice=state.notice if is_there else _gone(state.stage),
            panel=_kept(state.panel),
            scroll=0,
        )

    def _know(self, progress: Progress) -> None:
        """Take this as the remembered progress; only verdicts on the current text are shown."""
        self._known = progress
        self._state = replace(self._state, progress=progress.of(self._texts))

    def _remember(self, result: StageResult) -> None:
        root, submission = self._workspace.root, self._submission
        try:
            found = remember_results(root, [result], submission, self._texts)
        except ProgressError as error:
            self._state = replace(self._state, notice=str(error))
        else:
            self._know(found.progress)
            self._state = replace(self._state, notice=found.note or self._state.notice)

    @property
    def _panels(self) -> dict[str, tuple[type[Panel], Callable[[], Watching]]]:
        """The panel that a key opens or, if it is shown, closes."""
        return {
            "a": (Every, lambda: self._state.showing(Every())),
            "l": (Standing, lambda: self._state.showing(Standing())),
            "?": (KeysShown, lambda: self._state.showing(KeysShown())),
            "d": (DiffShown, self._compared),
            "w": (NotesShown, self._noted),
            "t": (TraceShown, self._example),
        }

    def _pressed(self, key: str) -> None:
        state = self._state
        if key in ("q", "Q"):
            self._is_over = True
        elif key == ESCAPE:
            self._state = state.showing(None)
        elif key == "h":
            self._state = self._hinted()
        elif key in self._panels:
            kind, opened = self._panels[key]
            self._state = state.showing(None) if isinstance(state.panel, kind) else opened()
        elif key == "r":
            self._judge.change_seed()
            self._begin()
        elif key == "e" and not self._workspace.file(state.stage).exists():
            self._state = replace(state, notice=_gone(state.stage))
        elif key == "e":
            trouble = self._edit(self._workspace.file(state.stage), self._line())
            self._state = replace(state, notice=trouble)
        else:
            step = {UP: -1, "k": -1, DOWN: 1, "j": 1, PAGE_UP: -_PAGE, PAGE_DOWN: _PAGE, " ": _PAGE}
            self._state = replace(state, scroll=max(0, state.scroll + step.get(key, 0)))

    def _hinted(self) -> Watching:
        state, stage = self._state, self._state.stage
        try:
            hints = open_hints(stage)
        except KitError as error:
            return replace(state, notice=str(error))
        turn = next_turn(hints, state.progress.stage(stage.slug))
        change = partial(turn.remembered, slug=stage.slug)
        try:
            found = update_progress(self._workspace.root, change)
            progress, notice = found.progress, found.note
        except ProgressError as error:
            progress, notice = change(self._known), str(error)
        self._know(progress)
        return replace(self._state.showing(HintShown(hints, turn)), notice=notice)

    def _example(self) -> Watching:
        """Show the stage's example, and run it if the current text has no trace yet."""
        state, seen = self._state, self._seen
        if not state.stage.trace_file.is_file():
            return replace(state, notice=f"{state.stage.slug} has no example")
        self._state = state.showing(self._traced.get(state.stage, TraceShown()))
        if state.phase is Phase.WAITING and isinstance(seen, Submission) and self._must_trace():
            self._judge.submit(state.stage, seen, Work.TRACE)
        return self._state

    def _noted(self) -> Watching:
        """Show why the solution of the stage that passed last, or of this one, is as it is."""
        state = self._state
        stage = state.success.stage if state.success else state.stage
        if not state.progress.stage(stage.slug).is_open:
            return replace(state, notice=f"the notes on {stage.slug} open when it passes")
        try:
            return state.showing(NotesShown(open_hints(stage)))
        except KitError as error:
            return replace(state, notice=str(error))

    def _compared(self) -> Watching:
        state, stage = self._state, self._state.stage
        try:
            now, stub = read_text(self._workspace, stage), began_from(self._workspace, stage)
        except KitError as error:
            return replace(state, notice=str(error))
        return state.showing(DiffShown(stage.file_name, stub, now))

    def _line(self) -> int:
        """The line where the editor opens the learner's file: the first unwritten place."""
        with suppress(OSError):
            text = self._workspace.file(self._state.stage).read_text("utf-8", "replace")
            for number, line in enumerate(text.splitlines(), start=1):
                if line.lstrip().startswith("raise NotImplementedError"):
                    return number
        return 1


def _first_unfinished(course: Course, progress: Progress) -> Stage | None:
    """The first stage `in_turn` that has not passed."""
    stages = in_turn(course, progress)
    return next((s for s in stages if progress.stage(s.slug).status is not Status.PASSED), None)


def _kept(panel: Panel | None) -> Panel | None:
    """What stays open when a file is saved: the example, which is run again."""
    return panel if isinstance(panel, TraceShown) else None


def _gone(stage: Stage) -> str:
    return f"{stage.file_name} is missing: `grade reset {stage.slug}` restores it"
