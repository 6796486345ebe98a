"""The screen of `grade watch --author`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from grader.authoring.verify.screen import summary
from grader.authoring.watch.loop import Proved
from grader.show.screen import Page, framed
from grader.types.text import listed


@framed
def proved_screen(page: Page, proved: Proved) -> Iterator[Text]:
    """What is wrong and what is left to do, and how long the proof took."""
    if proved.stub:
        yield from page.sentence(f"{proved.stub}: rewritten", "dim")
    if proved.proof is None:
        yield from page.sentence(proved.fault, "red")
    else:
        yield from summary(page, proved.proof)
        if proved.users:
            verb = "uses" if len(proved.users) == 1 else "use"
            words = f"{listed(proved.users)} {verb} this stage: `grade verify` proves all."
            yield from page.sentence(words, "dim")
        words = f"Done in {proved.seconds:.1f} s. The next save proves it again."
        yield from page.sentence(words, "dim")
