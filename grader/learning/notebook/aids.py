"""The parts that a learner can open beside a verdict in a notebook: hints, and an example."""

from __future__ import annotations

from grader.learning.hints.types import LEARNT, Hints
from grader.learning.pictures.heatmap_html import heatmap_html
from grader.learning.pictures.types import TracedHeatmap
from grader.show.html import details_html, inline_html, markdown_html
from grader.types.report import Diagnosis, StageResult, Status


def aids_html(
    stage: StageResult, hints: Hints | None = None, heatmap: TracedHeatmap | None = None
) -> str:
    """The heatmap, then the hints or, once the stage has passed, what was learnt."""
    parts = []
    if heatmap is not None:
        parts.append(details_html("Your code on an example", heatmap_html(heatmap)))
    if hints is not None:
        if stage.status is Status.PASSED:
            parts.append(_aftermath(hints))
        elif stage.status is not Status.ERROR and stage.caused_by is None:
            parts.append(_ladder(hints, stage.advised))
    return "".join(parts)


def _ladder(hints: Hints, advised: Diagnosis | None) -> str:
    """Nested hints: opening one reveals the next. The hint about the mistake comes first."""
    total, rung = len(hints.rungs), advised.hint if advised else None
    first = rung if rung is not None and 1 <= rung <= total else 1
    reason = " for this failure" if first == rung else ""
    ladder = _rungs(hints, first, total, f"A hint{reason}")
    if first > 1:
        ladder += _rungs(hints, 1, first - 1, "The hints before it")
    return ladder


def _rungs(hints: Hints, first: int, last: int, opening: str) -> str:
    """The rungs from `first` to `last`, each inside the one before or its answer."""
    total, inner = len(hints.rungs), ""
    for number in range(last, first - 1, -1):
        rung = hints.rungs[number - 1]
        summary = f"{opening if number == first else 'The next hint'} ({number} of {total})"
        heading = f"<p><strong>{inline_html(rung.heading)}</strong></p>"
        if rung.answer:
            answer = markdown_html(rung.answer) + inner
            inner = details_html("The answer", answer, is_indented=False)
        inner = details_html(summary, heading + markdown_html(rung.text) + inner)
    return inner


def _aftermath(hints: Hints) -> str:
    """What was learnt; the reader can open the rest."""
    opened = f"<p><strong>Learnt</strong></p>{markdown_html(hints.learnt)}" if hints.learnt else ""
    rest = (pair for pair in hints.sections.items() if pair[0] != LEARNT)
    return opened + "".join(details_html(head, markdown_html(text)) for head, text in rest)
