"""What is said when a class was graded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean, median

from rich.text import Text

from grader.show.screen import MARGIN, Page, Screen, amount, count
from grader.types.gradebook import Graded


def summary(assignment: str, results: Sequence[Graded], seed: int) -> Screen:
    """How many were graded, their points, and everything that was odd."""
    return Screen(lambda page: _summary(page, assignment, results, seed))


def _summary(page: Page, assignment: str, results: Sequence[Graded], seed: int) -> Iterator[Text]:
    yield Text()
    if not results:
        name = page.word(assignment)
        yield from page.sentence(Text(f"Nothing new to grade in {name}; --force grades again."))
        yield Text()
        return
    yield from page.sentence(
        Text(f"{page.word(assignment)}: {count(len(results), 'submission')} graded, seed {seed}.")
    )
    known = [result.points for result in results if result.points is not None]
    if known:
        most = amount(results[0].max_points)
        said = f"Of {most} points: median {amount(median(known))}, mean {amount(mean(known))}, "
        yield from page.sentence(Text(f"{said}from {amount(min(known))} to {amount(max(known))}."))
    for result in results:
        odd = list(result.notes)
        if result.points is None:
            odd.append("The grader itself failed: give these points by hand.")
        if odd:
            yield Text()
            yield from page.sentence(Text(page.word(result.student), "bold"))
            for note in odd:
                yield from page.wrap(Text(page.word(note)), MARGIN + 2)
    yield Text()
