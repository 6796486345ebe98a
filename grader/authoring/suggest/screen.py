"""The screen of `grade suggest`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from grader.authoring.suggest.inputs import shapes, written
from grader.authoring.suggest.types import Mistake, Parting, Suggestions
from grader.show.screen import MARGIN, Page, count, framed
from grader.types.text import listed

_HEAD = "bold"
_PAIRS = 2  # that are named for an input


@framed
def suggestions_screen(page: Page, found: Suggestions) -> Iterator[Text]:
    """The candidates with their changes, then the inputs, then the examples."""
    some = f"{len(found.mistakes)} that behave" if len(found.mistakes) != 1 else "1 that behaves"
    words = f"{some} in a new way" if found.mistakes else "none that behaves in a new way"
    tried = f"{found.slug}: {count(found.tried, 'small change')} of the solution"
    yield from page.sentence(f"{tried}, {words}", _HEAD)
    for number, mistake in enumerate(found.mistakes, start=1):
        yield from _mistake(page, number, mistake)
    yield Text()
    if found.failing:
        words = f"Your solution does not pass {listed(found.failing)}: "
        yield from page.sentence(f"{words}`grade verify {found.slug}` says why.", "yellow")
        yield Text()
    if found.partings:
        words = "No check makes these calls. A check with one of them catches more:"
        yield from page.sentence(words, _HEAD)
        for parting in found.partings:
            yield from _parting(page, parting)
        yield Text()
    for example in found.examples:
        yield from page.sentence(f"An example for the docstring of {example.entry}:", _HEAD)
        yield from page.verbatim("\n".join(example.lines), MARGIN + 2, limit=30)[0]
        yield Text()
    if found.mistakes:
        numbers = " ".join(str(at) for at in range(1, 1 + min(3, len(found.mistakes))))
        yield from page.offer("To keep some: ", f"grade suggest {found.slug} --write {numbers}")
        yield from page.offer("To keep all:  ", f"grade suggest {found.slug} --write")


def _mistake(page: Page, number: int, mistake: Mistake) -> Iterator[Text]:
    yield from page.wrap(mistake.id, MARGIN, Text(f"{number:2}  ", "bold"))
    for sign, lines, style in (("-", mistake.before, "red"), ("+", mistake.after, "green")):
        for line in lines or ("(nothing)",):
            yield from page.wrap(Text(page.clean(line), style), MARGIN + 4, Text(f"{sign} ", style))


def _parting(page: Page, parting: Parting) -> Iterator[Text]:
    sizes = shapes(parting.call)
    line = written(parting.call) + (f"   {sizes}" if sizes else "")
    yield from page.wrap(Text(page.clean(line), "cyan"), MARGIN + 2)
    for names in parting.pairs[:_PAIRS]:
        words = f"catches {names[0]}" if len(names) == 1 else f"tells {' from '.join(names)}"
        yield from page.wrap(Text(page.clean(words), "dim"), MARGIN + 4)
    more = len(parting.pairs) - _PAIRS
    if more > 0:
        yield from page.wrap(Text(f"and {more} more", "dim"), MARGIN + 4)
