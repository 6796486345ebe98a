"""Grades a notebook's cells for its kernel, with an engine that stays warm.

Requests and answers are JSON. A request is one of

    {"id", "cells", "stages": [slug ...], "graded": number or null}
                                                without stages, all that the cells define is graded
    {"id", "cells", "show": "trace" | "heatmap" | "repro", "of": stage or check}
    {"cancel": id}

with `cells`: [[number, source, id or null, seconds] ...]. The answer has the same id and is one of

    {"id", "report", "html", "text", "runs", "partial"}
                                                `runs`: whether the cell's own code finished;
                                                `partial`: whether only visible checks ran
    {"id", "html", "text"}                      what was to be shown
    {"id", "error"}                             one line for the learner
    {"id", "cancelled": true}

The first message is {"ready": true}.
"""

from __future__ import annotations

import gc
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from rich.console import Console

from grader.engine import Engine, Request
from grader.judge.places import is_begun
from grader.learning.hints.ladder import open_hints_if_any
from grader.learning.notebook.aids import aids_html
from grader.learning.notebook.screen import verdict
from grader.learning.pictures.heatmap import heatmap_screen
from grader.learning.pictures.heatmap_html import heatmap_html
from grader.learning.pictures.trace import stop_screen, trace_screen
from grader.learning.pictures.types import TracedHeatmap
from grader.read.course_file import find_stage
from grader.read.progress import remembered
from grader.read.submission import too_much_code
from grader.run.cells import Cell, has_tests, may_define, names_in, replayed, submitted
from grader.run.parts import DEADLY_ANSWER, DEADLY_CELL
from grader.show.html import MONOSPACE, verdict_html
from grader.show.screen import Screen
from grader.types.course import Course, Stage
from grader.types.errors import CourseError, KitError
from grader.types.progress import NOTEBOOK
from grader.types.report import Outcome, Report, StageResult, Status, to_json
from grader.types.seed import fresh_seed
from grader.types.submission import Submission
from grader.types.text import listed

_Message = Mapping[str, Any]
_NAME = "this notebook"
_NOT_RUN = (
    "the cell was graded but not run here, because it takes too long or ends its process: move "
    "that code to another cell"
)
_WIDTH = 80
_SHOWS = re.compile(r"\s*%(trace|heatmap|repro)\b")  # a cell that asks to show a stage
# The engine's name for a cell: its place among the submitted cells.
_PLACE = re.compile(r"^( *(?:look at +)?)(?:code )?cell (\d+)(?=, lines? \d)", re.MULTILINE)


class Service:
    """One thread reads the requests, so that it sees a cancellation at once; another one works.

    Remembers results in the workspace `root` if there is one. For nbgrader, a stage that no cell
    defines has no points; a learner at work is asked to run its cell.
    """

    def __init__(
        self,
        course: Course,
        root: Path | None,
        send: Callable[[_Message], None],
        *,
        is_nbgrader: bool,
    ) -> None:
        self._course = course
        self._root = None if is_nbgrader else root
        self._send = send
        self._is_nbgrader = is_nbgrader
        self._jobs: SimpleQueue[_Message | None] = SimpleQueue()
        self._cancelled: set[int] = set()
        self._current: int | None = None
        self._closed = False
        self._engine: Engine | None = None

    def read(self, requests: Iterable[str]) -> None:
        """Pass the requests on; the end of the requests ends the service."""
        for line in requests:
            message = json.loads(line)
            if "cancel" in message:
                self._cancelled.add(message["cancel"])
                self._stop(message["cancel"])
            else:
                self._jobs.put(message)
        self._closed = True
        self._jobs.put(None)
        self._stop(self._current)

    def work(self, engine: Engine) -> None:
        """Answer the requests one by one."""
        self._engine = engine
        self._send({"ready": True})
        gc.freeze()
        while (job := self._jobs.get()) is not None and not self._closed:
            self._current = job["id"]
            self._send({"id": job["id"], **self._answer(engine, job)})
            engine.interpreter.prepare()
            gc.collect()  # the engine has disabled automatic collection

    def _stop(self, job: int | None) -> None:
        if self._engine is not None and job is not None and job == self._current:
            self._engine.cancel()

    def _answer(self, engine: Engine, job: _Message) -> _Message:
        from grader.run.failures import Cancelled

        def go_on(result: StageResult | None = None) -> None:
            if self._closed or job["id"] in self._cancelled:
                raise Cancelled

        try:
            go_on()
            if "show" in job:
                return self._shown(engine, job["show"], job["of"], job["cells"])
            return self._verdict(engine, job, go_on)
        except Cancelled:
            return {"cancelled": True}
        except KitError as error:
            return {"error": str(error)}

    def _verdict(
        self, engine: Engine, job: _Message, go_on: Callable[[StageResult | None], None]
    ) -> _Message:
        from grader.run.answers import AT_IMPORT

        course, graded = self._course, job["graded"]
        ran = [Cell(*cell) for cell in job["cells"]]
        stages = self._stages(job["stages"], ran)
        self._ask_to_run(stages, ran, graded)
        seed = fresh_seed()
        for cells in self._choices(stages, ran, graded):
            submission = _submission(cells)
            report = engine.grade(Request(submission, stages, seed), go_on)
            runs = DEADLY_CELL not in report.notes and not any(
                AT_IMPORT in check.message for s in report.stages for check in s.checks
            )
            if runs or graded is None or DEADLY_ANSWER in report.notes:
                break
        notes = [] if runs else [_NOT_RUN]
        for stage, result in zip(stages, report.stages, strict=True):
            notes += self._remember(result, submitted(course, [stage], ran, graded))
            notes += self._unrun(stage, result, ran)
            notes += self._redefined(stage, result, cells, graded)
        names = [
            "this cell" if cell.number == graded else f"cell [{cell.number}]" for cell in cells
        ]
        others = [note for note in report.notes if runs or note != DEADLY_CELL]
        report = replace(_renamed(report, names), notes=(*dict.fromkeys(notes), *others))
        hints, beside = {}, {}
        for stage, result in zip(stages, report.stages, strict=True):
            go_on(None)
            if len(stages) == 1 or result.status is Status.FAILED:  # else the scoreboard is enough
                drawn = self._heatmap(engine, stage, result, submission) if runs else None
                hints[stage.slug] = open_hints_if_any(stage)
                beside[stage.slug] = aids_html(result, hints[stage.slug], drawn)
        return {
            "report": to_json(report),
            "html": verdict_html(report, beside),
            "text": _text(verdict(report, hints)),
            "runs": runs,
            "partial": course.is_partial,
        }

    def _shown(self, engine: Engine, kind: str, of: str, all_cells: list[Any]) -> _Message:
        """A trace, a heatmap or a reproduction. Raises KitError."""
        course, ran = self._course, [Cell(*cell) for cell in all_cells]
        stage = find_stage(course, of.partition(".")[0])
        if kind != "repro" and not stage.trace_file.is_file():
            raise KitError(f"{stage.slug} has no example")
        self._ask_to_run([stage], [cell for cell in ran if not _SHOWS.match(cell.source)], None)
        cells = next(self._choices((stage,), ran, None))
        submission = _submission(cells)
        if kind == "repro":
            from grader.learning.repro.reproduced import reproduced

            return _as_text(
                reproduced(course, of, submission, 0, engine.interpreter, engine.checks)
            )
        from grader.learning.pictures.tracer import right_trace, trace

        found = trace(course, stage, submission, engine.interpreter)
        names = [f"cell [{cell.number}]" for cell in cells]
        if kind == "trace":
            right = right_trace(course, found, engine.interpreter)
            return _as_text(_named(_text(trace_screen(found, right, offers=False)), names))
        if found.heatmap is None and found.stop is None:
            raise KitError(f"the example of {stage.slug} draws no heatmap: %trace {stage.slug}")
        if found.heatmap is None:
            return _as_text(_named(_text(stop_screen(found, offers=False)), names))
        return {"html": heatmap_html(found.heatmap), "text": _text(heatmap_screen(found.heatmap))}

    def _choices(
        self, stages: Sequence[Stage], ran: list[Cell], graded: int | None
    ) -> Iterator[list[Cell]]:
        """The cells to grade: first all cells that ran, then only those that the stages need.

        Skips the first choice if it would take too long, and if the graded cell holds tests,
        because other cells' tests do not count then.
        """
        needed = submitted(self._course, stages, ran, graded)
        others = sum(cell.seconds for cell in ran if cell not in needed)
        has_own_tests = graded is not None and any(stage.fixture for stage in stages)
        everything = replayed(self._course, stages, ran, graded)
        is_short = not too_much_code([cell.source for cell in everything])
        if is_short and others < self._course.limits.load_seconds and not has_own_tests:
            yield everything
        yield needed

    def _stages(self, slugs: list[str], cells: list[Cell]) -> tuple[Stage, ...]:
        """The stages to grade. Raises KitError if one is unknown, or there is nothing to grade."""
        named = {find_stage(self._course, slug) for slug in slugs}
        chosen = tuple(
            stage
            for stage in self._course.stages
            if stage in named
            or (not named and any(may_define(entry.name, cells) for entry in stage.entry_points))
            or (not named and has_tests(stage, cells))
        )
        if not chosen:
            first = self._course.stages[0]
            names = " and ".join(entry.name for entry in first.entry_points)
            what = f"tests that take {names}" if first.fixture else names
            raise KitError(f"nothing is defined yet: write {what} in a cell and run it first")
        return chosen

    def _ask_to_run(self, stages: Sequence[Stage], ran: list[Cell], graded: int | None) -> None:
        """Raises KitError if no cell that ran holds anything of a named stage."""
        if graded is not None or self._is_nbgrader:
            return
        for stage in stages:
            if not is_begun(_submission(ran), stage, ""):
                raise KitError(f"{stage.slug} has not run in this kernel: run its cell first")

    def _remember(self, result: StageResult, cells: list[Cell]) -> list[str]:
        """Remember a result if there is a workspace; returns notes on what went wrong.

        Only changes in the stage's own cells count as a new attempt.
        """
        if self._root is None:
            return []
        note = remembered(self._root, [result], _submission(cells), {result.slug: NOTEBOOK})
        return [note] if note else []

    def _unrun(self, stage: Stage, result: StageResult, ran: list[Cell]) -> list[str]:
        """What to run if the stage waits for one that no cell has defined, as after a restart."""
        needed = [self._course.stage(slug) for slug in stage.requires]
        unrun = [
            each.slug
            for each in needed
            if not any(may_define(entry.name, ran) for entry in each.entry_points)
        ]
        if (result.caused_by or result.perhaps) not in unrun:
            return []
        have, their = ("has", "its cell") if len(unrun) == 1 else ("have", "their cells")
        return [f"{listed(unrun)} {have} not run in this kernel: run {their} first"]

    def _redefined(
        self, stage: Stage, result: StageResult, cells: list[Cell], graded: int | None
    ) -> list[str]:
        """Which cell counts if several define what fails: reruns do not change their order."""
        notes = []
        blamed = self._course.stage(result.caused_by or stage.slug)
        for entry in blamed.entry_points if result.status is Status.FAILED else ():
            numbers = [c.number for c in cells if c.id and entry.name in names_in(c.source).own]
            if len(numbers) > 1 and numbers[-1] != graded:
                several = listed([f"[{number}]" for number in numbers])
                notes.append(
                    f"cells {several} define {entry.name}, and [{numbers[-1]}] counts: if it is "
                    "only a trial, use another name there"
                )
        return notes

    def _heatmap(
        self, engine: Engine, stage: Stage, result: StageResult, submission: Submission
    ) -> TracedHeatmap | None:
        """The heatmap of the stage's example, for an answer that finishes in time."""
        is_slow = any(check.outcome is Outcome.TIMEOUT for check in result.checks)
        if result.status not in (Status.PASSED, Status.FAILED) or is_slow or result.caused_by:
            return None
        if not stage.trace_file.is_file():
            return None
        from grader.learning.pictures.tracer import trace

        with suppress(CourseError):
            return trace(self._course, stage, submission, engine.interpreter).heatmap
        return None


def _submission(cells: list[Cell]) -> Submission:
    sources = tuple(cell.source for cell in cells)
    why = too_much_code(sources)
    return Submission(_NAME, {}, cells=sources, refused=f"{_NAME}: {why}" if why else "")


def _as_text(text: str) -> _Message:
    return {"html": f'<pre style="{MONOSPACE}">{escape(text)}</pre>', "text": text}


def _renamed(report: Report, names: list[str]) -> Report:
    """The report with the learner's own names for the cells."""

    def renamed(stage: StageResult) -> StageResult:
        checks = [replace(c, message=_named(c.message, names)) for c in stage.checks]
        return replace(stage, checks=tuple(checks), printed=_named(stage.printed, names))

    return replace(report, stages=tuple(renamed(stage) for stage in report.stages))


def _named(text: str, names: list[str]) -> str:
    """The text with the learner's own names for the cells."""

    def name(found: re.Match[str]) -> str:
        place = int(found[2]) - 1
        return found[1] + names[place] if 0 <= place < len(names) else found[0]

    return _PLACE.sub(name, text)


def _text(screen: Screen) -> str:
    """The screen as plain text."""
    file = io.StringIO()
    Console(file=file, width=_WIDTH, color_system=None, legacy_windows=False).print(screen, end="")
    return "\n".join(line.rstrip() for line in file.getvalue().split("\n")).strip("\n")
