"""The screen after an assignment of an nbgrader course was graded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from grader.classes.folder.counted import spread
from grader.classes.nbgrader.types import Graded
from grader.show.screen import MARGIN, Page, amount, count, framed


@framed
def summary(
    page: Page,
    assignment: str,
    results: Sequence[Graded],
    seed: int,
    others: Sequence[str] = (),
    skipped: Sequence[str] = (),
) -> Iterator[Text]:
    """How many submissions were graded, their points, and everything unusual.

    `others` are graded cells that belong to no stage of the course. `skipped` has a sentence about
    each submission in the wrong place.
    """
    for note in skipped:
        yield from page.sentence(page.word(note), "yellow")
    if not results:
        name = page.word(assignment)
        yield from page.sentence(
            f"Nothing new to grade in {name} by the times in timestamp.txt; --force regrades all."
        )
        return
    yield from page.sentence(
        f"{page.word(assignment)}: {count(len(results), 'submission')} graded, seed {seed}."
    )
    known = [result.points for result in results if result.points is not None]
    if known:
        most = amount(results[0].max_points)
        late = ", before late penalties" if any(result.is_late for result in results) else ""
        yield from page.sentence(f"Of {most} points{late}: {spread(known)}.")
    if others:
        words = (
            f"No stage of the course grades {page.word(', '.join(others))}: points stay as they "
        )
        yield from page.sentence(f"{words}are in the gradebook; set missing ones by hand.")
    for result in sorted(results, key=lambda each: each.student):
        odd = list(result.notes)
        if result.points is None:
            odd.append("The grader itself failed: set these points by hand.")
        if odd:
            yield Text()
            yield from page.sentence(page.word(result.student), "bold")
            for note in odd:
                yield from page.wrap(page.word(note), MARGIN + 2)
    yield Text()
    yield from page.offer("Next:", f"nbgrader generate_feedback {page.word(assignment)}")
