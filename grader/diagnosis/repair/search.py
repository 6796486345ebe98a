"""Tries edits, likeliest first, until the stage passes with one or the time is up. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from grader.diagnosis.repair.edits.edit import Edit


def search(
    edits: Iterable[Edit],
    helps: Callable[[Edit], bool],
    passes: Callable[[Edit], bool],
    has_time: Callable[[], bool],
) -> tuple[Edit | None, bool]:
    """The first edit with which the stage `passes`, and whether the time was up before the end.

    `helps` runs what fails first, `passes` everything; `has_time` is asked before each.
    """
    for edit in edits:
        if not has_time():
            return None, True
        if helps(edit):
            if not has_time():
                return None, True
            if passes(edit):
                return edit, False
    return None, not has_time()
