"""The screen of a finished course: what the learner's code did, the way there, what comes next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from grader.learning.pictures.curves import curves_lines
from grader.learning.pictures.heatmap import heatmap_screen
from grader.learning.pictures.trace import stop_screen
from grader.learning.pictures.types import Trace, TracedHeatmap
from grader.show.scoreboard import standing, unjudged
from grader.show.screen import GAP, MARGIN, Page, amount, count, framed
from grader.tracing import Curves
from grader.types.course import Stage, core_of
from grader.types.progress import NOTEBOOK, StageProgress

_NO_PICTURES = (
    "These verdicts are on your notebook. There are no pictures, because the files of your "
    "workspace do not work yet."
)


@dataclass(frozen=True)
class Certificate:
    """A finished course. `name` is the learner's, "" if not given; `shown` is what the code did.

    `passed` holds each stage that passes, and how the learner got there.
    """

    course: str
    name: str
    date: str
    passed: tuple[tuple[Stage, StageProgress], ...]
    shown: Trace

    def points(self, *, bonus: bool) -> float:
        """The points of the bonus stages, or of the others."""
        return sum(known.score for stage, known in self.passed if stage.bonus is bonus)


@framed
def certificate_screen(
    page: Page, certificate: Certificate, offers: Sequence[tuple[str, str]]
) -> Iterator[Text]:
    """The result, the parts that the author's file yields, the stages, and what to type next."""
    line = Text(result(certificate), "bold green")
    yield from page.sentence(line)
    for part in certificate.shown.parts:
        if isinstance(part, TracedHeatmap):
            yield from list(heatmap_screen(part).draw(page))[:-1]
        elif isinstance(part, Curves):
            yield Text()
            yield from curves_lines(page, part)
        elif isinstance(part, str):
            yield Text()
            yield from page.sentence(page.inline(part))
    if any(known.is_on(NOTEBOOK) for _, known in certificate.passed) and certificate.shown.stop:
        yield Text()
        yield from page.sentence(_NO_PICTURES)
    elif certificate.shown.stop is not None:
        yield from stop_screen(certificate.shown).draw(page)
    yield Text()
    yield from page.sentence("The way here", "bold")
    width = max(cell_len(page.word(stage.slug)) for stage, _ in certificate.passed)
    for stage, known in certificate.passed:
        if page.plain:
            yield from page.sentence(f"{page.word(stage.slug)}: {way(known)}.")
            continue
        line = Text(" " * MARGIN).append(page.column(stage.slug, width))
        yield from page.wrap(Text(" " * GAP + way(known), "dim"), MARGIN, line)
    yield Text()
    yield from page.offers(offers)


@framed
def too_early(page: Page, left: Mapping[str, StageProgress]) -> Iterator[Text]:
    """What is said while stages do not pass: their slugs, and where each stands."""
    yield from page.sentence("You get the certificate when every core stage passes. Still missing:")
    for slug, known in left.items():
        word = unjudged(known) if known.status is None else standing(known)
        yield from page.sentence(f"  {page.word(slug)}: {word}")
    yield Text()
    yield from page.offer("To grade them:", "grade")


def result(certificate: Certificate) -> str:
    """The score in a sentence."""
    core = core_of([stage for stage, _ in certificate.passed])
    more = certificate.points(bonus=True)
    bonus = f", and {amount(more)} bonus points" if more else ""
    points = count(certificate.points(bonus=False), "point")
    return f"All {len(core)} stages pass: {points}{bonus}."


def way(known: StageProgress) -> str:
    """How often a stage was tried, the highest hint that was seen, and when it first passed."""
    facts = [
        count(known.attempts, "attempt") if known.attempts else "",
        f"up to hint {known.rungs}" if known.rungs else "no hint",
        f"first passed on {known.passed[:10]}" if known.passed else "",
    ]
    return ", ".join(filter(None, facts))
