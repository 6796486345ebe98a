"""A stage's hints on the screen: one rung, the whole ladder, what the stage teaches, a solution."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.text import Text

from grader.learning.hints.turn import Turn
from grader.learning.hints.types import Hints, Part
from grader.show.screen import MARGIN, Page, framed, screen
from grader.types.course import Stage

_REPAIR_LINES = 12
_COMMENT = re.compile(r"( *# )(.*)")


@framed
def hint(
    page: Page, stage: Stage, hints: Hints, turn: Turn, *, is_open: bool = False, repair: str = ""
) -> Iterator[Text]:
    """One turn of the hints and how to get the next one.

    `is_open` is whether the learner may read all hints at once. After the last hint comes the
    `repair` of the learner's own code, if one is known.
    """
    yield from rung(page, stage.title, hints, turn)
    if turn.speaks_to:
        yield Text()
        found = page.inline(turn.speaks_to)
        yield from page.wrap(found, MARGIN, Text("The last run found: ", "bold yellow"))
    yield Text()
    if turn.part is Part.QUESTION:
        yield from page.offer(
            "The answer:  " if is_open else "The answer:", f"grade hint {stage.slug}"
        )
    elif turn.number < len(hints.rungs):
        yield from page.offer("The next one:", f"grade hint {stage.slug}")
    else:
        yield from _last(page, repair)
    if is_open:
        yield from page.offer("All of them: ", f"grade hint {stage.slug} --all")


def _last(page: Page, repair: str) -> Iterator[Text]:
    if repair:
        words = "And last, your own code with the one small change that fixes this mistake:"
        yield from page.sentence(words)
        yield from page.verbatim(repair, MARGIN + 2, limit=_REPAIR_LINES)[0]
    yield from page.sentence("This was the last one.", "dim")


@screen
def ladder(page: Page, hints: Hints) -> Iterator[Text]:
    """Every hint of a stage, and the sections after the last."""
    yield Text()
    yield from _heading(page, hints.title, f"all {len(hints.rungs)} hints")
    yield Text()
    for number in range(1, len(hints.rungs) + 1):
        yield from _rung(page, hints, Turn(number))
        yield Text()
    yield from aftermath(hints).draw(page)


@screen
def aftermath(page: Page, hints: Hints) -> Iterator[Text]:
    """What a learner reads after passing: what was learnt, why, and what to read next."""
    for heading, text in hints.sections.items():
        yield from page.sentence(heading, "bold")
        yield from page.markdown(text, MARGIN)
        yield Text()


@framed
def solution(page: Page, stage: Stage, code: str, *, gave_up: bool = False) -> Iterator[Text]:
    """The code of a solution; `gave_up` if the learner sees it before passing.

    A line of code stays whole however long it is: print this with `soft_wrap`.
    """
    yield from page.sentence(
        Text().append(page.word(stage.title), "bold").append("   one solution")
    )
    yield Text()
    if gave_up:
        yield from page.sentence(
            "You see it before passing; `grade` remembers that. Now write your own version."
        )
        yield Text()
    for line in code.rstrip().split("\n"):
        comment = _COMMENT.fullmatch(line)
        if comment is None:
            yield Text(" " * MARGIN + page.clean(line), no_wrap=True)
        else:  # every wrapped line stays a comment
            head = " " * MARGIN + comment[1]
            for part in page.wrap(page.clean(comment[2]), len(head)):
                yield Text(head + part.plain.strip(), "dim")


def rung(page: Page, title: str, hints: Hints, turn: Turn) -> Iterator[Text]:
    """One turn of the hints under the stage's title."""
    more = ", about what the last run found" if turn.speaks_to else ""
    if turn.part is Part.ANSWER:
        more = ", the answer"
    yield from _heading(page, title, f"hint {turn.number} of {len(hints.rungs)}{more}")
    yield Text()
    yield from _rung(page, hints, turn)


def _heading(page: Page, title: str, what: str) -> Iterator[Text]:
    yield from page.sentence(Text().append(page.word(title), "bold").append(f"   {what}", "dim"))


def _rung(page: Page, hints: Hints, turn: Turn) -> Iterator[Text]:
    shown = hints.rungs[turn.number - 1].shown(turn.part)
    yield from page.markdown(f"# {turn.number}. {shown}", MARGIN)
