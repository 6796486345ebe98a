"""A report as the outputs, points and comments of a notebook's cells that grade. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from grader.read.notebook import TAG
from grader.show.html import feedback_html, scoreboard_html
from grader.show.screen import amount, count
from grader.types.gradebook import CellVerdict, NotebookVerdict
from grader.types.report import Outcome, Report, StageResult, Status
from grader.types.text import safe

# The page around is nbgrader's: it hides the marks of what can be opened, its captions are pale and
# its headings too low for a narrow window. It is white, so it is turned where the reader's system
# is dark. No line may be empty: markdown would begin there.
_STYLE = """<style>
summary { display: list-item; cursor: pointer; }
summary:focus-visible { outline: 2px solid #1a5fb4; outline-offset: 2px; }
.scoreboard caption { color: inherit; }
.scoreboard code { overflow-wrap: anywhere; white-space: normal; }
@media (max-width: 700px) {
  .scoreboard tr { display: block; margin: .3em 0; }
  .scoreboard td { display: inline-block; }
  div.nbgrader_cell .panel-heading { height: auto; overflow: auto; }
}
@media (prefers-color-scheme: dark) {
  html { filter: invert(0.9) hue-rotate(180deg); background: #fff; }
  img, svg { filter: invert(1) hue-rotate(180deg); }
}
</style>"""


_LETTERS = 400  # of a reason that a student's code may have given
_NOT_YOURS = "The grader itself failed here: this has to be looked at. It is not your mistake."


def notebook_verdict(
    report: Report, answers: Mapping[str, str], notes: Sequence[str] = ()
) -> NotebookVerdict:
    """What a report says in a notebook; `answers` are the ids of the cells with the answers.

    A stage whose checks the grader itself could not run has no points: somebody has to look at it.
    `notes` are what was done to the notebook before it was graded.
    """
    cells = []
    for stage in report.stages:
        known = stage.status is not Status.ERROR
        cells.append(
            CellVerdict(
                grade_id=stage.slug,
                answer_id=answers[stage.slug],
                points=stage.score if known else None,
                max_points=stage.max_score,
                reason=feedback_html(report, stage),
                comment=comment(stage),
            )
        )
    remarks = "".join(f"<li>{_line(note)}</li>" for note in notes)
    small = "<br>".join(_line(note) for note in report.notes)
    summary = (
        f"{_STYLE}{scoreboard_html(report)}"
        + (f"<ul>{remarks}</ul>" if remarks else "")
        + (f"<p><small>{small}</small></p>" if small else "")
    )
    return NotebookVerdict(tuple(cells), summary)


def unreadable_verdict(
    cells: Iterable[tuple[str, str, float]], why: Sequence[str]
) -> NotebookVerdict:
    """No points for a file in which there is nothing to grade.

    `cells` are the ids of the cells that grade and of those with the answers, and the points.
    """
    said = safe(" ".join(why))
    reason = f"<p><strong>There is nothing to grade here.</strong> {_line(said)}</p>"
    verdicts = tuple(
        CellVerdict(grade_id, answer_id, 0, points, reason, _words(said))
        for grade_id, answer_id, points in cells
    )
    return NotebookVerdict(verdicts, f"{_STYLE}{reason}")


def unknown_verdict(cells: Iterable[tuple[str, str, float]], why: str) -> NotebookVerdict:
    """What is left where the grader itself has failed: points that a person has to give.

    `cells` are as for `unreadable_verdict`.
    """
    reason = f"<p><strong>{_line(_NOT_YOURS)}</strong> {_line(why)}</p>"
    verdicts = tuple(
        CellVerdict(grade_id, answer_id, None, points, reason, _NOT_YOURS)
        for grade_id, answer_id, points in cells
    )
    return NotebookVerdict(verdicts, f"{_STYLE}{reason}")


def comment(stage: StageResult) -> str:
    """A stage's verdict in a few lines of text, which is shown as it is and as markdown."""
    points = f"{amount(stage.score)} of {amount(stage.max_score)} points."
    if stage.status is Status.PASSED:
        return f"{points} All checks pass."
    if stage.status is Status.NOT_STARTED:
        return f"{points} Nothing is written here yet."
    if stage.status is Status.ERROR:
        return _NOT_YOURS
    if stage.caused_by is not None:
        return f"{points} It fails only because it uses {stage.caused_by}, which is not right."
    costless = (Outcome.PASSED, Outcome.SKIPPED)
    lost = [c for c in stage.checks if c.outcome not in costless or c.score < c.max_score]
    checks = count(len(stage.checks), "check")
    reasons = {c.message for c in lost if c.message.strip()}
    if len(lost) == len(stage.checks) > 1 and len(reasons) == 1:
        lines = [f"{points} All {checks} failed for one reason: {_words(reasons.pop())[:_LETTERS]}"]
    else:
        lines = [f"{points} {len(lost)} of {checks} failed:", ""]
        lines += [f"- {_words(c.title)} (-{amount(c.max_score - c.score)})" for c in lost]
    found = {c.diagnosis.id: c.diagnosis for c in lost if c.diagnosis is not None}
    for diagnosis in found.values():
        lines += ["", f"Likely: {_words(diagnosis.text)}"]
        if diagnosis.hint is not None:
            lines.append(f"Hint {diagnosis.hint} of `grade hint {stage.slug}` speaks to it.")
    return "\n".join(lines)


def put_verdict(cells: list[Any], verdict: NotebookVerdict, make: Any = dict) -> None:
    """Give the notebook's cells their outputs, and the notebook the summary as its first cell.

    `make` turns each new piece into what the notebook is made of.
    """
    by_id = {cell.grade_id: cell for cell in verdict.cells}
    for cell in cells:
        known = cell["metadata"].get("nbgrader", {})
        found = by_id.get(known.get("grade_id"))
        if found is not None and known.get("grade"):
            cell["outputs"] = [make(output) for output in outputs(found)]
            cell["execution_count"] = None
    cells.insert(
        0,
        make(
            {
                "cell_type": "markdown",
                "id": "verdict",
                "metadata": make({}),
                "source": verdict.summary,
            }
        ),
    )


def outputs(verdict: CellVerdict) -> list[dict[str, Any]]:
    """The outputs of a cell that grades: nbgrader takes the points from a result's plain text.

    Whatever else stands there counts as full points for nbgrader, so nothing else does.
    """
    html = {"text/html": verdict.reason}
    if verdict.points is None:
        said = "the grader itself failed here: these points have to be given by hand"
        return [
            {"output_type": "display_data", "data": html, "metadata": {}},
            {
                "output_type": "error",
                "ename": "GraderFailed",
                "evalue": said,
                "traceback": [f"GraderFailed: {said}"],
            },
        ]
    return [
        {
            "output_type": "execute_result",
            "data": {"text/plain": plain_points(verdict.points, verdict.max_points), **html},
            "metadata": {},
            "execution_count": None,
        }
    ]


def _line(text: str) -> str:
    """Text for a page; an empty line in it would end the HTML that it stands in."""
    return escape(" ".join(safe(text).split()))


def _words(text: str) -> str:
    """Text for a comment: in it no tag or link is one, whoever wrote it."""
    return TAG.sub("&lt;", " ".join(safe(text).split())).replace("](", "] (")


def plain_points(points: float, max_points: float) -> str:
    """Points as nbgrader reads them: digits, from 0 to the most there are."""
    return repr(min(max(float(points), 0.0), float(max_points)))
