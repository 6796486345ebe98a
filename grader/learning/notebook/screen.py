"""The screen after writing a notebook, and a notebook's verdict as text where HTML is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from grader.learning.hints.types import Hints
from grader.show.scoreboard import footnotes, provisional, scoreboard
from grader.show.screen import MARGIN, Page, count, framed, screen
from grader.show.terminal import explanation
from grader.types.report import Report, Status


@screen
def verdict(page: Page, report: Report, every: Mapping[str, Hints | None]) -> Iterator[Text]:
    """The scoreboard, then why a stage fails or what was learnt: the text beside the HTML.

    `every` holds the hints of the stages by slug.
    """
    yield from scoreboard(report).draw(page)
    statuses = [stage.status for stage in report.stages]
    if Status.FAILED in statuses or Status.ERROR in statuses:
        yield from explanation(report, every=True).draw(page)
    elif Status.NOT_STARTED in statuses:
        to_begin = (
            Text("Put your code in place of ")
            .append("raise NotImplementedError", "cyan")
            .append(" and rerun the cell.")
        )
        why = report.stages[0].why_not_started if len(report.stages) == 1 else ""
        yield from page.sentence(page.word(why) or to_begin)
        yield Text()
    elif report.is_partial and report.stages:
        yield from provisional(page, report.stages)
        yield Text()
    for stage in report.stages if len(report.stages) == 1 else ():
        hints = every.get(stage.slug)
        if stage.status is Status.PASSED and hints is not None and hints.learnt:
            yield from page.sentence(f"Learnt in {page.word(stage.slug)}", "bold")
            yield from page.markdown(hints.learnt, MARGIN)
            yield Text()
    yield from footnotes(report).draw(page)


@framed
def written(
    page: Page, name: str, stages: int, open_it: str, copy: str = "", left_out: Sequence[str] = ()
) -> Iterator[Text]:
    """The notebook `name` was written; shows the command to open it.

    `copy` is the copy of the old one; `left_out` are the stages whose code is only in files.
    """
    line = Text("Written: ").append(page.word(name), "bold").append(f", {count(stages, 'stage')}.")
    yield from page.sentence(line)
    if copy:
        yield from page.sentence(f"A copy of the old notebook is {page.word(copy)}.")
    yield Text()
    yield from page.offer("Open it:", open_it)
    yield from page.sentence("If Jupyter is not installed: pip install jupyterlab", "dim")
    if left_out:
        yield Text()
        files = page.word(", ".join(left_out))
        yield from page.sentence(
            Text(f"Your files have code for {files}; the notebook has the stubs. To put your code ")
            .append("into it, add ")
            .append("--force --with-answers", "bold")
            .append(".")
        )
