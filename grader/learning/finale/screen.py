"""The finale on the screen: what is learnt, the progress, and the results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.text import Text

from grader.learning.finale.programs import Program
from grader.learning.finale.training import Moment, Run
from grader.learning.pictures.curves import curves_lines
from grader.learning.pictures.heatmap import heatmap_screen
from grader.learning.pictures.numbers import short
from grader.show.screen import COMMAND, MARGIN, Page, count, framed, screen
from grader.tracing import Curves

_SAMPLE_LINES = 12
_FIRST = 10  # the first place of the curves, in steps, or soon after
_APART = math.sqrt(2)  # each place is this many times the one before


@framed
def opening(page: Page, program: Program, without: str) -> Iterator[Text]:
    """What a training is about."""
    title = Text().append(page.word(program.title), "bold")
    if without:
        title.append(f"   without {without}", "bold yellow")
    yield from page.sentence(title.append(f"   {page.word(program.name)}", "dim"))
    if not without:
        yield from page.sentence(page.inline(program.about))


@screen
def moment_lines(page: Page, program: Program, moment: Moment) -> Iterator[Text]:
    """The step and its loss, then a sample."""
    if moment.loss is not None:
        yield from page.sentence(
            f"step {moment.step} of {program.steps}: loss {short(moment.loss)}"
        )
    if moment.sample:
        yield from page.sentence(f"What it writes after {moment.step} steps:", "dim")
        lines, _ = page.verbatim(moment.sample, MARGIN + 2, gutter=True, limit=_SAMPLE_LINES)
        yield from lines
        yield Text()


@screen
def result(page: Page, runs: Sequence[Run], *, is_last: bool = True) -> Iterator[Text]:
    """The results of a training, beside those without a mistake if there are two.

    The last one says what a missing part was for, or which parts can be left out.
    """
    last = runs[-1]
    if not last.is_whole:
        words = f"Stopped at step {len(last.losses)} of {last.program.steps}. Below is what "
        yield from page.sentence(f"{words}it learnt until then.", "yellow")
        yield Text()
    if last.losses:
        yield from curves_lines(page, loss_curves(runs))
    if last.heatmap is not None:
        yield from heatmap_screen(last.heatmap).draw(page)
    else:
        yield Text()
    for name, number in last.scores.items():
        told = short(number)
        if len(runs) > 1 and name in runs[0].scores:
            told = f"{short(runs[0].scores[name])}, without {last.without} {told}"
        yield from page.sentence(Text(page.word(name)).append(f": {told}", "bold"))
    for name, number in last.guides.items():
        yield from page.sentence(page.word(f"{name}, the dotted line: {short(number)}"), "dim")
    seconds = round(last.seconds)
    duration = count(seconds, "second") if seconds else "less than a second"
    yield from page.sentence(f"Trained for {duration}.", "dim")
    if last.without:
        yield Text()
        yield from page.sentence(page.inline(last.program.without[last.without]))
    elif is_last and last.program.without:
        yield Text()
        yield from page.sentence("To see what each part is for, train without it:")
        for part in last.program.without:
            command = page.word(f"grade finale {last.program.name} --without {part}")
            yield Text(" " * (MARGIN + 2)).append(command, COMMAND)
    yield Text()


@screen
def not_passed(page: Page, slug: str, is_changed: bool) -> Iterator[Text]:
    """What is said before the training if the code has not passed."""
    yield Text()
    so_far = "needs to be graded again" if is_changed else "has not passed yet"
    yield from page.sentence(f"{page.word(slug)} {so_far}, so the model may not learn.")
    yield from page.offer("To check it:", f"grade {slug}")


@screen
def trouble(page: Page, slug: str, message: str, *, offers: bool) -> Iterator[Text]:
    """Why there is no training and, with `offers`, what to type next.

    Without a message, the stage is not written yet.
    """
    yield Text()
    why = ", but it fails:" if message else ", which is not written yet."
    yield from page.sentence(
        Text("The finale needs your ").append(page.word(slug), "bold").append(why)
    )
    if message:
        yield from page.verbatim(message, MARGIN + 2, limit=_SAMPLE_LINES)[0]
    yield Text()
    if offers:
        yield from page.offer("To check it:", f"grade {slug}")
        yield Text()


def loss_curves(runs: Sequence[Run]) -> Curves:
    """The losses of some runs of one program, each place the mean since the one before."""
    program = runs[0].program
    steps = min(len(run.losses) for run in runs)
    places: list[int] = [steps]
    while places[0] > _FIRST * _APART:
        places.insert(0, round(places[0] / _APART))

    def means(run: Run) -> list[float]:
        pieces = zip([0, *places], places, strict=False)
        return [sum(run.losses[a:b]) / (b - a) for a, b in pieces]

    return Curves(
        title=f"Loss: {program.title}",
        x=places,
        curves={f"without {r.without}" if r.without else "yours": means(r) for r in runs},
        guides={
            name: [number] * len(places) for name, number in runs[0].guides.items() if number > 0
        },
        x_axis="steps",
        y_axis="loss",
    )
