"""A stage's solution, for whoever has passed or given up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.text import Text

from grader.show.screen import MARGIN, Page, Screen
from grader.types.course import Stage

_COMMENT = re.compile(r"( *# )(.*)")


def solution(stage: Stage, code: str, *, gave_up: bool = False) -> Screen:
    """The code of a solution; `gave_up` whether it is shown before the stage has passed."""
    return Screen(lambda page: _solution(page, stage, code, gave_up))


def _solution(page: Page, stage: Stage, code: str, gave_up: bool) -> Iterator[Text]:
    yield Text()
    yield from page.sentence(
        Text().append(page.word(stage.title), "bold").append("   one solution")
    )
    yield Text()
    if gave_up:
        yield from page.sentence(
            Text("Shown before you have passed, and remembered. Now write it in your own words.")
        )
        yield Text()
    for line in code.rstrip().split("\n"):
        comment = _COMMENT.fullmatch(line)
        if comment is None:
            yield from page.verbatim(line, MARGIN, limit=len(line) + 1)[0]
        else:  # each line of it must be one, or the code would not be code any more
            head = " " * MARGIN + comment[1]
            for part in page.wrap(Text(page.clean(comment[2])), len(head)):
                yield Text(head + part.plain.strip(), "dim")
    yield Text()
