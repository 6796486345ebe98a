"""A learner's changes to a stub: added and removed lines with a few lines around them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from rich.cells import chop_cells
from rich.text import Text

from grader.show.screen import Page, count, screen

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")
_STYLES = {"+": "green", "-": "red", "@": "cyan", " ": ""}
# For screen readers, which may skip a sign.
_WORDS = {"+": "added: ", "-": "removed: ", " ": ""}


@screen
def diff(page: Page, name: str, stub: str, now: str) -> Iterator[Text]:
    """How `now`, the text of the file `name`, differs from its original stub."""
    titles = (f"{name} (stub)", f"{name} (now)")
    lines = list(
        difflib.unified_diff(stub.splitlines(), now.splitlines(), *titles, n=3, lineterm="")
    )
    if not lines:
        yield from page.sentence(f"{page.word(name)} is unchanged: it is still the stub.")
        return
    if not page.plain:
        yield from (Text(page.word(line), "bold") for line in lines[:2])
    for line in lines[2:]:
        yield from diff_line(page, line)
    signs = [line[0] for line in lines[2:]]
    total = f"{count(signs.count('+'), 'line')} added, {signs.count('-')} removed."
    yield Text()
    yield from page.sentence(total)


def diff_line(page: Page, line: str) -> Iterator[Text]:
    """One line of a unified diff; the rest of a long line follows below, without a sign."""
    sign, text, style = line[0], page.clean(line[1:]), _STYLES[line[0]]
    hunk = _HUNK.match(line)
    if page.plain and hunk is not None:
        yield Text(f"From line {hunk[1]}:")
        return
    head = _WORDS[sign] if page.plain else sign
    for piece in chop_cells(text, max(8, page.width - len(head))) or [""]:
        yield Text(head + piece, style)
        head = " " * len(head)
