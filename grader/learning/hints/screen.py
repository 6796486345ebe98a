"""A stage's hints on the screen: one rung, the whole ladder, and what the stage teaches."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from grader.learning.hints.types import Hints
from grader.show.screen import MARGIN, Page, screen
from grader.types.course import Stage

_REPAIR_LINES = 12


@screen
def hint(
    page: Page,
    stage: Stage,
    hints: Hints,
    number: int,
    speaks_to: str = "",
    *,
    is_open: bool = False,
    repair: str = "",
) -> Iterator[Text]:
    """Hint `number` (from 1) and how to get the next one.

    `speaks_to` is the mistake that the hint is about, if it was chosen for one; `is_open` is
    whether the learner may read all hints at once. After the last hint comes the `repair` of the
    learner's own code, if one is known.
    """
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
        yield from _last(page, repair)
    if is_open:
        yield from page.offer("All of them: ", f"grade hint {stage.slug} --all")
    yield Text()


def _last(page: Page, repair: str) -> Iterator[Text]:
    if repair:
        words = "And last, your own code with the one small change that fixes this mistake:"
        yield from page.sentence(Text(words))
        yield from page.verbatim(repair, MARGIN + 2, limit=_REPAIR_LINES)[0]
    yield from page.sentence(Text("This was the last one.", "dim"))


@screen
def ladder(page: Page, hints: Hints) -> Iterator[Text]:
    """Every hint of a stage, and the sections after the last."""
    yield Text()
    yield from _heading(page, hints.title, f"all {len(hints.rungs)} hints")
    yield Text()
    for number in range(1, len(hints.rungs) + 1):
        yield from _rung(page, hints, number)
        yield Text()
    yield from aftermath(hints).draw(page)


@screen
def aftermath(page: Page, hints: Hints) -> Iterator[Text]:
    """What a learner reads after passing: what was learnt, why, and what to read next."""
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


def rung(page: Page, title: str, hints: Hints, number: int, advised: bool) -> Iterator[Text]:
    """One hint under the stage's title; `advised` if it is about the mistake that was found."""
    why = ", for the mistake that the last run found" if advised else ""
    yield from _heading(page, title, f"hint {number} of {len(hints.rungs)}{why}")
    yield Text()
    yield from _rung(page, hints, number)


def _heading(page: Page, title: str, what: str) -> Iterator[Text]:
    yield from page.sentence(Text().append(page.word(title), "bold").append(f"   {what}", "dim"))


def _rung(page: Page, hints: Hints, number: int) -> Iterator[Text]:
    rung = hints.rungs[number - 1]
    yield from page.markdown(f"# {number}. {rung.heading}\n\n{rung.text}", MARGIN)
