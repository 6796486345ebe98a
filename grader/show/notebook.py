"""What is said of a notebook that was written, and a verdict in it where no HTML is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from grader.show.html import StageAids
from grader.show.screen import MARGIN, Page, Screen, count
from grader.show.terminal import explanation, footnotes, provisional, scoreboard
from grader.types.report import Report, Status


def verdict(report: Report, aids: Mapping[str, StageAids]) -> Screen:
    """The scoreboard, then why a stage fails or what was learnt: the text beside the HTML."""
    return Screen(lambda page: _verdict(page, report, aids))


def written(
    name: str, stages: int, open_it: str, copy: str = "", left_out: Sequence[str] = ()
) -> Screen:
    """A notebook `name` is there, and the command to open it.

    `copy` is where the one before is kept; `left_out` are the stages whose code stayed in files.
    """
    return Screen(lambda page: _written(page, name, stages, open_it, copy, left_out))


def _verdict(page: Page, report: Report, aids: Mapping[str, StageAids]) -> Iterator[Text]:
    yield from scoreboard(report).draw(page)
    statuses = [stage.status for stage in report.stages]
    if Status.FAILED in statuses or Status.ERROR in statuses:
        yield from explanation(report, every=True).draw(page)
    elif Status.NOT_STARTED in statuses:
        yield from page.sentence(
            Text("Put your code in place of ")
            .append("raise NotImplementedError", "cyan")
            .append(" and run the cell again.")
        )
        yield Text()
    elif report.is_partial and report.stages:
        yield from provisional(page, report.stages)
        yield Text()
    for stage in report.stages if len(report.stages) == 1 else ():
        hints = aids.get(stage.slug, StageAids()).hints
        if stage.status is Status.PASSED and hints is not None and hints.learnt:
            yield from page.sentence(Text(f"Learnt in {page.word(stage.slug)}", "bold"))
            yield from page.markdown(hints.learnt, MARGIN)
            yield Text()
    yield from footnotes(report).draw(page)


def _written(
    page: Page, name: str, stages: int, open_it: str, copy: str, left_out: Sequence[str]
) -> Iterator[Text]:
    yield Text()
    said = Text("Written: ").append(page.word(name), "bold").append(f", {count(stages, 'stage')}.")
    yield from page.sentence(said)
    if copy:
        yield from page.sentence(Text(f"What was there is kept as {page.word(copy)}."))
    yield Text()
    yield from page.offer("Open it:", open_it)
    yield from page.sentence(Text("If Jupyter is not installed: pip install jupyterlab", "dim"))
    if left_out:
        yield Text()
        files = page.word(", ".join(left_out))
        yield from page.sentence(
            Text(f"You have begun {files} in files; the notebook holds the stubs. To have your ")
            .append("code in it instead, add ")
            .append("--force --with-answers", "bold")
            .append(".")
        )
    yield Text()
