"""What a learner, a notebook and a class will see of a stage, part by part, while it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any

from rich.text import Text

from grader.authoring.verify.types import Progress
from grader.classes.folder.types import LedgerEntry, SubmissionRecord, Version
from grader.classes.report.page import class_report
from grader.judge.verdict import judge, judge_stage, judge_untouched
from grader.learning.hints.ladder import hint_headings, read_hints
from grader.learning.hints.screen import ladder
from grader.learning.notebook.builder import notebook
from grader.learning.predict.questions import read_predictions
from grader.misconceptions import Misconception
from grader.read.faults import fault_of
from grader.read.misconceptions import read_known
from grader.read.stubs import read_stub
from grader.show.failure import NextSteps
from grader.show.html import markdown_html
from grader.show.scoreboard import footnotes, scoreboard
from grader.show.screen import MARGIN, Page, Screen, screen
from grader.show.terminal import explanation
from grader.types.course import Assignment, Course, Stage
from grader.types.errors import KitError
from grader.types.report import Report, Status

if TYPE_CHECKING:
    from grader.run.session import Checks


_SEED = 1
_LINES = 10_000  # of a text that is shown whole


@dataclass(frozen=True)
class Part:
    """One thing that somebody will see: for a terminal, and for a page if it looks otherwise there.

    Parts of one `group` belong together.
    """

    group: str
    title: str
    screen: Screen
    html: str = ""


def preview(
    course: Course, stage: Stage, progress: Progress = lambda slug, done, total: None
) -> Iterator[Part]:
    """The parts of a stage, in the order in which people meet them.

    A part that cannot be made yet says why. `progress` is called with the slug, the number of
    misconceptions that have run, and of all.
    """
    reports: list[tuple[Misconception, Report]] = []
    stub, hints = stage.place(stage.exercise_file), f"grade hint {stage.slug}"
    made: dict[str, Callable[[], Iterable[Part]]] = {
        "Stub": lambda: [Part("Stub", stub, _verbatim(read_stub(stage)))],
        "First screen": lambda: [_first_screen(course, stage)],
        "Failure screens": lambda: _failures(course, stage, reports, progress),
        "Hints": lambda: [Part("Hints", hints, ladder(read_hints(stage)))],
        "Notebook": lambda: _notebook(course, stage),
        "Class report": lambda: _class(course, stage, reports),
    }
    places = {each.file_name: each.place(each.solution_file) for each in course.stages}
    for group, make in made.items():
        try:
            yield from make()
        except Exception as error:  # noqa: BLE001 - an author's file may raise anything
            words = str(error) if isinstance(error, KitError) else fault_of(error, places)
            yield Part(group, "not yet", _sentence(words))


@screen
def _sentence(page: Page, words: str) -> Iterator[Text]:
    yield from page.sentence(page.clean(words))


@screen
def _verbatim(page: Page, text: str) -> Iterator[Text]:
    yield from page.verbatim(text, MARGIN, limit=_LINES)[0]


def _first_screen(course: Course, stage: Stage) -> Part:
    report = judge(course, "exercises", "cpu", [judge_untouched(stage)])
    return Part("First screen", f"grade {stage.slug}", _report_screen(stage, report))


def _report_screen(stage: Stage, report: Report) -> Screen:
    """What `grade STAGE` prints."""
    file = stage.place(stage.exercise_file)
    traced = [stage.slug] if stage.trace_file.is_file() else []
    why = explanation(report, NextSteps(file, traced=traced, repro="grade repro"))
    parts = (scoreboard(report), why, footnotes(report))
    return Screen(lambda page: chain.from_iterable(part.draw(page) for part in parts))


# --- the screens of misconceptions -----------------------------------------------------------


def _failures(
    course: Course, stage: Stage, reports: list[tuple[Misconception, Report]], progress: Progress
) -> Iterator[Part]:
    """The failure screen of each misconception; adds their reports."""
    reports += _judged(course, stage, progress)
    why = f"No check catches this, so it has no such screen: `grade verify {stage.slug}` says why."
    for mistake, report in reports:
        shown = _report_screen(stage, report) if _fails(report) else _sentence(why)
        yield Part("Failure screens", mistake.id, shown)


def _fails(report: Report) -> bool:
    return any(result.status is not Status.PASSED for result in report.stages)


def _judged(course: Course, stage: Stage, progress: Progress) -> list[tuple[Misconception, Report]]:
    """The verdict on each misconception, run in this process."""
    known = read_known(stage)
    from grader.authoring.verify.runs import import_libraries, silence

    import_libraries(course)
    from grader.diagnosis.comparison.diagnose import diagnose
    from grader.run.collecting import with_checks
    from grader.run.local_answers import LocalAnswers
    from grader.run.solutions import local_solutions
    from grader.run.under_check import StageUnderCheck

    def body(checks: Checks) -> list[tuple[Misconception, Report]]:
        found = []
        for mistake in known.misconceptions:
            right = local_solutions(course, stage)
            answers = LocalAnswers(mistake.among(right), course.limits)
            with silence():
                facts = checks.run(stage, StageUnderCheck(stage, answers), _SEED, "cpu")
                reasons = diagnose(facts, known, right)
            result = judge_stage(stage, facts, diagnoses=reasons)
            found.append((mistake, judge(course, "exercises", "cpu", [result], [f"seed {_SEED}"])))
            progress(stage.slug, len(found), len(known.misconceptions))
        return found

    return with_checks(course, [stage], body, seconds=course.limits.load_seconds)


# --- hints, notebook and class ---------------------------------------------------------------


def _notebook(course: Course, stage: Stage) -> Iterator[Part]:
    predictions = read_predictions(stage)
    there = [each for each in course.stages if each == stage or each.solution_file.is_file()]
    data = notebook(
        replace(course, stages=tuple(there)),
        {each.slug: read_stub(each) for each in there},
        {stage.slug: predictions} if predictions else {},
        {stage.slug: stage.figure_file.read_bytes()} if stage.figure_file.is_file() else {},
    )
    cells = [cell for cell in data["cells"] if cell["metadata"].get("grader")]
    own = [cell for cell in cells if cell["metadata"]["grader"]["stage"] == stage.slug]
    cells = [cell for cell in own if cell["source"]]  # the last one is for the learner to fill
    html = "".join(map(_cell_html, cells))
    yield Part("Notebook", "its section of the notebook", _cells_screen(cells), html)


@screen
def _cells_screen(page: Page, cells: Sequence[dict[str, Any]]) -> Iterator[Text]:
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield from page.markdown(text, MARGIN)
        else:
            yield from page.verbatim(text, MARGIN, "cyan", gutter=True, limit=_LINES)[0]
        yield Text()


def _cell_html(cell: dict[str, Any]) -> str:
    text = "".join(cell["source"])
    if cell["cell_type"] != "markdown":
        return f'<pre class="cell">{escape(text)}</pre>'
    pictures = [each["image/png"] for each in cell.get("attachments", {}).values()]
    text = re.sub(r"!\[[^\]]*\]\(attachment:[^)]*\)", "", text)
    shown = "".join(f'<img alt="" src="data:image/png;base64,{each}">' for each in pictures)
    return markdown_html(text) + shown


def _class(
    course: Course, stage: Stage, reports: Sequence[tuple[Misconception, Report]]
) -> Iterator[Part]:
    """The report on a class in which each misconception is one student's."""
    if not reports:
        raise KitError("there is no misconception yet")
    headings = hint_headings(stage)
    version, now = Version("", {}), datetime.now(timezone.utc)
    entries = [
        LedgerEntry(SubmissionRecord(each.id, ""), version, _SEED, "cpu", report, now)
        for each, report in reports
    ]
    assignment, hints = Assignment(course.name, (stage,)), {stage.slug: headings}
    page = "".join(class_report(course.title, assignment, lambda: entries, hints=hints))
    frame = f'<iframe title="The class report" srcdoc="{escape(page, quote=True)}"></iframe>'
    drawn = _class_screen([each for each, report in reports if _fails(report)], headings)
    yield Part("Class report", "each known mistake is one student's", drawn, frame)


@screen
def _class_screen(
    page: Page, mistakes: Sequence[Misconception], headings: Sequence[str]
) -> Iterator[Text]:
    """Each sentence with the hint to give with it."""
    for mistake in mistakes:
        yield from page.sentence(page.inline(mistake.says))
        if mistake.hint is not None and 0 < mistake.hint <= len(headings):
            words = f"{mistake.hint}. {headings[mistake.hint - 1]}"
            yield from page.wrap(page.inline(words), MARGIN + 2, Text("Hint: ", "dim"))
        yield Text()
