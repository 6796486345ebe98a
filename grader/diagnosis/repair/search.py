"""Tries edits, likeliest first, until the stage passes with one or the time is up. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from grader.diagnosis.repair.edits import Edit


@dataclass(frozen=True)
class Found:
    """What came of a search: the `edit` with which the stage passes, None if there is none.

    `tried` is how many edits were run. With `gave_up` there were more, and no time for them.
    """

    edit: Edit | None
    tried: int
    gave_up: bool = False


def search(
    edits: Iterable[Edit],
    helps: Callable[[Edit], bool],
    passes: Callable[[Edit], bool],
    has_time: Callable[[], bool],
) -> Found:
    """The first edit with which the stage `passes`, of those that `helps` lets through.

    `helps` runs what fails first, `passes` everything; `has_time` is asked before each.
    """
    tried = 0
    for edit in edits:
        if not has_time():
            return Found(None, tried, gave_up=True)
        tried += 1
        if helps(edit):
            if not has_time():
                return Found(None, tried, gave_up=True)
            if passes(edit):
                return Found(edit, tried)
    return Found(None, tried, gave_up=not has_time())
