"""Which hint is next, and how much of it: first its question, then its answer."""

from __future__ import annotations

from dataclasses import dataclass

from grader.learning.hints.types import Hints, Part
from grader.types.progress import Progress, StageProgress


@dataclass(frozen=True)
class Turn:
    """What is shown at once: a part of hint `number` (from 1).

    `speaks_to` is the mistake that the hint is about, if it was chosen for one.
    """

    number: int
    part: Part = Part.WHOLE
    speaks_to: str = ""

    def remembered(self, progress: Progress, slug: str) -> Progress:
        """The progress after this was shown of the hints of `slug`."""
        return progress.with_hint(slug, self.number, asks=self.part is Part.QUESTION)


def next_turn(hints: Hints, known: StageProgress) -> Turn:
    """The question about the mistake found, the answer to the last question, or the next one."""
    number, advice = known.next_rung(len(hints.rungs)), known.advice
    if advice is not None and not advice.given and advice.rung == number:
        return _turn(hints, number, Part.QUESTION, advice.text)
    if number == known.asked:
        return _turn(hints, number, Part.ANSWER)
    return _turn(hints, number, Part.QUESTION if number > known.rungs else Part.WHOLE)


def last_turn(hints: Hints, known: StageProgress) -> Turn:
    """The last hint as far as it was shown; the first question if there was none."""
    number = min(known.asked or max(1, known.rungs), len(hints.rungs))
    asks = number == known.asked or number > known.rungs
    return _turn(hints, number, Part.QUESTION if asks else Part.WHOLE)


def chosen_turn(hints: Hints, known: StageProgress, number: int) -> Turn:
    """Hint `number`: only its question if it is new to a learner who may not see all."""
    is_seen = number <= known.rungs or known.is_open
    return _turn(hints, number, Part.WHOLE if is_seen else Part.QUESTION)


def _turn(hints: Hints, number: int, part: Part, speaks_to: str = "") -> Turn:
    """A hint without an answer is always whole."""
    return Turn(number, part if hints.rungs[number - 1].answer else Part.WHOLE, speaks_to)
