"""A stage's solution, for learners who have passed or given up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.text import Text

from grader.show.screen import MARGIN, Page, framed
from grader.types.course import Stage

_COMMENT = re.compile(r"( *# )(.*)")


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
