"""A stage's hints on the screen: one rung, the whole ladder, and what there is to learn from it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from grader.show.screen import MARGIN, Page, Screen
from grader.types.course import Stage
from grader.types.hints import Hints


def hint(
    stage: Stage, hints: Hints, number: int, speaks_to: str = "", *, is_open: bool = False
) -> Screen:
    """Hint `number` (from 1) and how to get the next one.

    `speaks_to` is the mistake that it was chosen for, if it was; `is_open` whether all hints may be
    read at once.
    """
    return Screen(lambda page: _hint(page, stage, hints, number, speaks_to, is_open))


def ladder(hints: Hints) -> Screen:
    """Every hint of a stage, and what comes after the last."""
    return Screen(lambda page: _ladder(page, hints))


def aftermath(hints: Hints) -> Screen:
    """What is there for whoever has passed: what was learnt, why, and what to read next."""
    return Screen(lambda page: _aftermath(page, hints))


def rung(page: Page, title: str, hints: Hints, number: int, advised: bool) -> Iterator[Text]:
    """One hint under the stage's title; `advised` if it speaks to the mistake that was found."""
    why = ", for the mistake that the last run found" if advised else ""
    yield from _heading(page, title, f"hint {number} of {len(hints.rungs)}{why}")
    yield Text()
    yield from _rung(page, hints, number)


def _hint(
    page: Page, stage: Stage, hints: Hints, number: int, speaks_to: str, is_open: bool
) -> Iterator[Text]:
    yield Text()
    yield from rung(page, stage.title, hints, number, bool(speaks_to))
    if speaks_to:
        yield Text()
        found = page.inline(speaks_to)
        yield from page.wrap(found, MARGIN, Text("The last run found: ", "bold yellow"))
    yield Text()
    if number < len(hints.rungs):
        yield from page.offer("The next one:", f"grade hint {stage.slug}")
    else:
        yield from page.sentence(Text("This was the last one.", "dim"))
    if is_open:
        yield from page.offer("All of them: ", f"grade hint {stage.slug} --all")
    yield Text()


def _ladder(page: Page, hints: Hints) -> Iterator[Text]:
    yield Text()
    yield from _heading(page, hints.title, f"all {len(hints.rungs)} hints")
    yield Text()
    for number in range(1, len(hints.rungs) + 1):
        yield from _rung(page, hints, number)
        yield Text()
    yield from _aftermath(page, hints)


def _aftermath(page: Page, hints: Hints) -> Iterator[Text]:
    sections = (
        ("Learnt", hints.learnt),
        ("Why it is written so", hints.why),
        ("Read next", hints.read_next),
    )
    for heading, text in sections:
        if text:
            yield from page.sentence(Text(heading, "bold"))
            yield from page.markdown(text, MARGIN)
            yield Text()


def _heading(page: Page, title: str, what: str) -> Iterator[Text]:
    yield from page.sentence(Text().append(page.word(title), "bold").append(f"   {what}", "dim"))


def _rung(page: Page, hints: Hints, number: int) -> Iterator[Text]:
    rung = hints.rungs[number - 1]
    yield from page.markdown(f"# {number}. {rung.heading}\n\n{rung.text}", MARGIN)
