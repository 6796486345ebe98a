"""The screens of `grade class --why` and `--requests`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo

from rich.text import Text

from grader.classes.folder.counted import all_points
from grader.classes.folder.types import LedgerEntry
from grader.classes.late import Late
from grader.classes.report.student import moment
from grader.classes.why.answer import PRESENT, Answer, Failure
from grader.classes.why.changes import outcomes, with_changes
from grader.classes.why.requests import Decision, Verdict
from grader.show.failure import every_failing_stage
from grader.show.screen import MARGIN, Page, amount, count, framed, screen
from grader.types.report import Report, Status
from grader.types.text import headline

_DIGEST = 12  # letters of a version
_LINES = 40  # of an input's numbers
_NAME, _REASON = 60, 500  # cells of a name, of a reason


@framed
def history(
    page: Page,
    entries: Sequence[LedgerEntry],
    slugs: Sequence[str],
    late: Late | None = None,
    zone: tzinfo | None = None,
) -> Iterator[Text]:
    """All verdicts on a student, oldest first, and what changed in these stages, and why.

    `late` is how late the last submission came, if it did. Times are in the `zone`, or in UTC.
    """
    yield from page.sentence(page.word(entries[-1].student), "bold")
    for entry, points, lines in with_changes(entries, slugs, zone):
        engine = f"engine {entry.version.engine[:_DIGEST]}"
        version = entry.report.version if entry.report is not None else ""
        course = f"version {version}, " if version else ""
        line = f"{moment(entry.when, zone)}: {points}, seed {entry.seed}, {course}{engine}"
        yield from page.wrap(page.word(line), MARGIN + 2)
        for note in (*lines, *entry.record.notes):
            yield from page.wrap(page.word(note), MARGIN + 4)
    if late is not None:
        all_of = all_points(entries[-1])
        left = f": {amount(all_of - late.penalty(all_of))} of {amount(all_of)} points count"
        cost = left if late.share else ""
        yield from page.sentence(f"The submission came {late.words}{cost}.", "yellow")


@screen
def overview(page: Page, report: Report, command: str) -> Iterator[Text]:
    """One reason for each failing stage, and what to type for all of them.

    `command` is that without a stage.
    """
    failing = [each for each in report.stages if each.status in (Status.FAILED, Status.ERROR)]
    for stage in failing:
        slug = page.word(stage.slug)
        if stage.caused_by:
            yield from page.sentence(f"{slug} fails because of {page.word(stage.caused_by)}.")
            continue
        shown = stage.causes[0].show
        reason = shown.diagnosis.text if shown.diagnosis else headline(shown.message)
        yield from page.sentence(Text(f"{slug}: ", "bold").append(page.word(reason, _REASON)))
        yield from page.offer("All reasons:", f"{command} {slug}")
    if failing:
        yield Text()


@screen
def every_reason(page: Page, report: Report) -> Iterator[Text]:
    """Everything known about why stages fail or count as not started.

    What to type next is the learner's affair.
    """
    for stage in report.stages:
        if stage.status in (Status.FAILED, Status.ERROR):
            yield from every_failing_stage(page, report, stage, None)
        elif stage.why_not_started:
            yield from page.sentence(page.word(stage.why_not_started))
            yield Text()


@screen
def failure_screen(page: Page, failure: Failure) -> Iterator[Text]:
    """The numbers that went into a failing check, above the lines that show it without the kit."""
    if failure.inputs:
        yield from page.sentence(f"What {page.word(failure.check)} gave to the code:")
    for name, numbers in failure.inputs:
        yield from page.wrap(Text(page.word(name), "bold"), MARGIN + 2)
        lines, left = page.verbatim(numbers, MARGIN + 2, limit=_LINES)
        yield from lines
        if left:
            yield Text(" " * (MARGIN + 2) + f"{page.glyphs.more} {count(left, 'more line')}")
    if failure.inputs:
        yield Text()
    if failure.why_not:
        yield from page.sentence(f"There are no lines to run: {page.word(failure.why_not)}.")
        return
    where = "below the notebook's cells" if failure.is_notebook else "in the folder of the files"
    words = f"To see {page.word(failure.check)} fail without the kit, run these lines {where}. "
    yield from page.sentence(f"{words}They run the student's code without a lock.")


@screen
def replay_outcome(page: Page, answer: Answer) -> Iterator[Text]:
    """Whether regrading gave the current verdict again."""
    entry, report = answer.entries[-1], answer.report
    kept = {} if entry.report is None else outcomes(entry.report, report)
    if not answer.is_same_version:
        yield from page.sentence(
            "This is the stored verdict. The course or the kit has changed since, so it cannot "
            "be replayed here: --regrade shows what this version gives."
        )
        if answer.failures:
            yield from page.sentence(PRESENT)
    elif outcomes(report, report) == kept:
        words = f"Regraded just now with seed {entry.seed}: every check gave the same result."
        yield from page.sentence(words, "green")
    else:
        now = outcomes(report, report)
        names = sorted(name for name in kept.keys() | now.keys() if kept.get(name) != now.get(name))
        words = f"Regraded just now with seed {entry.seed}, these checks gave other results: "
        yield from page.sentence(words + page.word(", ".join(names)), "red")
        question = "Does the answer use random numbers, the time or a library that was missing?"
        yield from page.sentence(question)

    yield Text()


@framed
def decisions_screen(
    page: Page, decisions: Sequence[Decision], file: str, earlier: str
) -> Iterator[Text]:
    """How many requests stand, and every other one with its reason.

    `earlier` is the file that keeps other decisions from before, or "".
    """
    counts = ", ".join(
        f"{verdict.value} {sum(each.verdict is verdict for each in decisions)}"
        for verdict in Verdict
    )
    yield from page.sentence(f"{count(len(decisions), 'request')}: {counts}.")
    for each in decisions:
        if each.verdict is not Verdict.STANDS:
            yield Text()
            student, stage = (page.word(x, _NAME) for x in (each.asked.student, each.asked.stage))
            line = Text(f"{student} {stage}".strip(), "bold")
            line.append(f"  {each.verdict.value}", "default")
            yield from page.sentence(line)
            yield from page.wrap(page.word(each.reason, _REASON), MARGIN + 2)
    yield Text()
    yield from page.sentence(f"Written: {page.word(file)}")
    if earlier:
        yield from page.sentence(f"The earlier decisions: {page.word(earlier)}")
