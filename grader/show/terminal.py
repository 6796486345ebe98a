"""What comes below the scoreboard: why a stage fails, or the next small step. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.text import Text

from grader.show.failure import NextSteps, every_failing_stage, failing_stage, printed_by
from grader.show.scoreboard import VISIBLE_PASS, provisional
from grader.show.screen import COMMAND, MARGIN, Page, amount, count, screen
from grader.types.course import core_of
from grader.types.report import Report, Status

_NO_STEPS = NextSteps()


@screen
def explanation(
    page: Page, report: Report, steps: NextSteps = _NO_STEPS, *, every: bool = False
) -> Iterator[Text]:
    """Why the first failing stage fails and what to do next; with `every`, all failing stages."""
    failing = [stage for stage in report.stages if stage.status in (Status.FAILED, Status.ERROR)]
    if not report.stages:
        yield from page.sentence("There is no stage to grade here.")
        yield Text()
    elif report.refusal:
        yield from page.sentence(f"Nothing was graded: {page.word(report.refusal)}", "bold red")
        yield Text()
    elif failing:
        if every:
            for stage in failing:
                yield from every_failing_stage(page, report, stage, replace(steps, traced=()))
        else:
            yield from failing_stage(page, report, failing[0], steps)
    elif all(stage.status is Status.NOT_STARTED for stage in report.stages):
        yield from _welcome(page, report, steps.file)
    elif report.passed:
        yield from _congratulation(page, report, steps.then)
    else:
        yield from _next_stage(page, report, steps.file)
    if every:
        for stage in report.stages:
            if stage.status is Status.PASSED:
                yield from printed_by(page, stage)


def _welcome(page: Page, report: Report, next_file: str | None) -> Iterator[Text]:
    slug = page.word(report.stages[0].slug)
    greeting = "Welcome! Nothing is written yet, so here is how to begin."
    reasons = [stage.why_not_started for stage in report.stages if stage.why_not_started]
    if reasons:
        for why in reasons:
            yield from page.sentence(page.word(why))
        yield Text()
        return
    if len(report.stages) == 1:
        greeting = f"Nothing is written in {slug} yet."
    where = Text("Open ").append(
        page.word(next_file) if next_file else f"the file of {slug}", COMMAND
    )
    yield from page.sentence(greeting)
    yield Text()
    steps = (
        where.append(" and read what it asks for."),
        Text("Put your code in place of ").append("raise NotImplementedError", "cyan").append("."),
        Text("Save the file and type ").append("grade", COMMAND).append(" again."),
    )
    for number, step in enumerate(steps, start=1):
        yield from page.wrap(step, MARGIN + 2, Text(f"{number}  "))
    yield Text()
    if not report.stages[0].is_exam:
        yield from page.offer("For a hint:", f"grade hint {slug}")
        yield Text()


def _next_stage(page: Page, report: Report, next_file: str | None) -> Iterator[Text]:
    """Some stages pass and none fails: only stages that are not started are left."""
    core = core_of(report.stages)
    done = sum(stage.status is Status.PASSED for stage in core)
    coming = next(stage for stage in core if stage.status is Status.NOT_STARTED)
    slug = page.word(coming.slug)
    so_far = f"{done} of {count(len(core), 'stage')} done."
    if report.is_partial:
        so_far = f"{done} of {count(len(core), 'stage')} so far. {VISIBLE_PASS}"
    yield from page.sentence(Text(f"{so_far} Next comes ").append(slug, "bold").append("."))
    yield Text()
    if next_file:
        yield from page.offer("Open:      ", next_file)
    yield from page.offer("Then type: ", f"grade {slug}")
    if not coming.is_exam:
        yield from page.offer("For a hint:", f"grade hint {slug}")
    yield Text()


def _congratulation(page: Page, report: Report, then: Sequence[tuple[str, str]]) -> Iterator[Text]:
    if report.is_partial:
        yield from provisional(page, [s for s in report.stages if s.status is Status.PASSED])
    else:
        yield from page.sentence(_praise(page, report))
        if len(report.stages) == 1:
            words = "Our solution, and the reasons for it:"
            yield from page.offer(words, f"grade solution {page.word(report.stages[0].slug)}")
    offers = list(then)
    untouched = [stage for stage in report.stages if stage.status is Status.NOT_STARTED]
    if untouched:
        is_left = f"For bonus points, {count(len(untouched), 'more stage')}:"
        offers.append((is_left, "grade list"))
    elif len(report.stages) == 1:
        offers.append(("To see what comes next:", "grade"))
    yield from page.offers(offers)
    yield Text()


def _praise(page: Page, report: Report) -> Text:
    core = [stage for stage in report.stages if not stage.bonus]
    stages = core or list(report.stages)
    score, max_score = (report.score, report.max_score) if core else (report.bonus, report.bonus)
    points = f"{amount(score)} of {amount(max_score)} points."
    if len(stages) == 1:
        return Text().append(page.word(stages[0].slug), "bold").append(f" passes: {points}")
    line = Text().append(f"All {len(stages)} stages pass", "bold green").append(f": {points}")
    return line.append(" Well done!")
