"""Turns a report into the outputs, points and comments of a notebook's graded cells. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from grader.classes.nbgrader.types import CellVerdict, NotebookVerdict
from grader.learning.notebook.builder import TAG
from grader.show.html import scoreboard_html, stage_html
from grader.show.screen import amount, count
from grader.types.report import Outcome, Report, StageResult, Status
from grader.types.resources import resource
from grader.types.text import headline, safe

# nbgrader makes the page around it: it hides the arrows of what can be opened, and its captions and
# headings do not suit a narrow window. Its page is white, so the style inverts the colours where
# the reader's system is dark. The style must have no empty line: markdown would start there.
_STYLE = f"<style>\n{resource(__package__, 'feedback.css')}</style>"


_LETTERS = 400  # characters of a reason, because a student's code may have written it
# What makes pages of a notebook takes hours for a megabyte of some texts.
_SHOWN, _ALL_SHOWN = 20_000, 400_000  # characters of one cell, and of all of them
_CUT = "... The rest of this cell is not shown here. All of it was graded."
_NOT_YOURS = (
    "The grader itself failed here, which is not your mistake. Your instructor will look at it."
)


def notebook_verdict(
    report: Report, cells: Mapping[str, tuple[str, str]], notes: Sequence[str] = ()
) -> NotebookVerdict:
    """A report as a notebook's verdict.

    `cells` maps slugs to the ids of the graded cell and of the answer's cell.
    A stage whose checks the grader could not run gets no points: a person has to look at it.
    `notes` say what was changed in the notebook before it was graded.
    """
    report = report.for_students
    verdicts = []
    for stage in report.stages:
        known = stage.status is not Status.ERROR
        grade_id, answer_id = cells[stage.slug]
        verdicts.append(
            CellVerdict(
                grade_id=grade_id,
                answer_id=answer_id,
                points=stage.score if known else None,
                max_points=stage.max_score,
                reason=feedback_html(report, stage),
                comment=comment(stage),
            )
        )
    remarks = "".join(f"<li>{_line(note)}</li>" for note in notes)
    small = "<br>".join(_line(note) for note in report.notes)
    board = scoreboard_html(report, {slug: ids[0] for slug, ids in cells.items()})
    summary = (
        f'{_STYLE}<div class="scoreboard">{board}</div>'
        + (f"<ul>{remarks}</ul>" if remarks else "")
        + (f"<p><small>{small}</small></p>" if small else "")
    )
    return NotebookVerdict(tuple(verdicts), summary, report.seconds, report.for_instructors)


def unreadable_verdict(
    cells: Iterable[tuple[str, str, float]], why: Sequence[str]
) -> NotebookVerdict:
    """Zero points for a file with nothing to grade.

    `cells` holds for each stage the ids of the graded cell and of the answer's cell, and the
    points.
    """
    words = safe(" ".join(why))
    return _same_everywhere(cells, 0, "There is nothing to grade here.", words, _words(words))


def unknown_verdict(cells: Iterable[tuple[str, str, float]], why: str) -> NotebookVerdict:
    """The verdict after the grader itself failed: a person has to set the points.

    `cells` are as for `unreadable_verdict`.
    """
    return _same_everywhere(cells, None, _NOT_YOURS, why, _NOT_YOURS)


def _same_everywhere(
    cells: Iterable[tuple[str, str, float]], points: float | None, first: str, why: str, words: str
) -> NotebookVerdict:
    reason = f"<p><strong>{_line(first)}</strong> {_line(why)}</p>"
    verdicts = (CellVerdict(one, two, points, most, reason, words) for one, two, most in cells)
    return NotebookVerdict(tuple(verdicts), f"{_STYLE}{reason}")


def feedback_html(report: Report, stage: StageResult) -> str:
    """The feedback on a submitted stage: no hints, but which one to ask for."""
    more = ""
    if stage.status is Status.FAILED and stage.caused_by is None:
        advised = stage.advised
        which = f", where hint {advised.hint} is about this failure" if advised else ""
        command = f"To continue: <code>grade hint {_line(stage.slug)}</code>{which}. "
        command = "" if stage.is_exam else command
        more = f"<p>{command}You can fix your code and grade it yourself.</p>"
    return stage_html(report, stage, more, "Nothing is written here yet.")


def comment(stage: StageResult) -> str:
    """A stage's verdict in a few lines, shown both as plain text and as markdown."""
    stage = stage.for_students
    points = f"{amount(stage.score)} of {amount(stage.max_score)} points."
    if stage.status is Status.PASSED:
        return f"{points} All checks pass."
    if stage.status is Status.NOT_STARTED:
        return f"{points} {_words(stage.why_not_started) or 'Nothing is written here yet.'}"
    if stage.status is Status.ERROR:
        return _NOT_YOURS
    if stage.caused_by is not None:
        return f"{points} It fails because it uses {stage.caused_by}, which is not right."
    skipped = [c for c in stage.checks if c.outcome is Outcome.SKIPPED]
    failed = [c for c in stage.checks if c.outcome not in (Outcome.PASSED, Outcome.SKIPPED)]
    lost = [*failed, *(c for c in skipped if c.score < c.max_score)]
    ran = count(len(stage.checks) - len(skipped), "check")
    reasons = {c.message for c in failed if c.message.strip()}
    is_one = len(lost) == len(stage.checks) and len(failed) > 1 and len(reasons) == 1
    if is_one:
        reason = "; ".join(line for line in reasons.pop().split("\n") if line.strip(" ^"))
        lines = [f"{points} All {ran} failed for one reason: {_words(reason)[:_LETTERS]}"]
    else:
        lines = [f"{points} {len(failed)} of {ran} failed:", ""]
        for one in lost:
            why = "" if one in failed else ", skipped: no points while others fail"
            cost = one.max_score - one.score
            points = f" (-{amount(cost)}{why})" if cost > 0 else ""
            lines.append(f"- {_words(one.title)}{points}")
    found = {c.diagnosis.id: c.diagnosis for c in lost if c.diagnosis is not None}
    if stage.causes and not found and not is_one:
        lines += ["", _words(headline(stage.causes[0].show.message))[:_LETTERS]]
    for diagnosis in found.values():
        lines += ["", f"{diagnosis.opening}{_words(diagnosis.text)}"]
        if diagnosis.hint is not None:
            lines.append(f"Hint {diagnosis.hint} of `grade hint {stage.slug}` is about this.")
    return "\n".join(lines)


def put_verdict(cells: list[Any], verdict: NotebookVerdict) -> None:
    """Write the outputs into the notebook's cells, and the summary into a new first cell.

    Cut the text of cells that are too long for a page.
    """
    room = _ALL_SHOWN
    by_id = {cell.grade_id: cell for cell in verdict.cells}
    for cell in cells:
        text, most = cell["source"], min(_SHOWN, room)
        room -= min(len(text), most)
        if len(text) > most:  # up to the end of a line, because half a link names no picture
            kept = text[:most].rpartition("\n")[0]
            cell["source"] = f"{kept}\n\n{'# ' if cell['cell_type'] == 'code' else ''}{_CUT}"
        known = cell["metadata"].get("nbgrader", {})
        found = by_id.get(known.get("grade_id"))
        if found is not None and known.get("grade"):
            cell["outputs"] = outputs(found)
            cell["execution_count"] = None
    about = {"cell_type": "markdown", "id": "verdict", "metadata": {}}
    cells.insert(0, {**about, "source": verdict.summary})


def outputs(verdict: CellVerdict) -> list[dict[str, Any]]:
    """The outputs of a graded cell: nbgrader reads the points from a result's plain text.

    nbgrader gives full points for any other text there, so the text is nothing but a number.
    """
    html = {"text/html": verdict.reason}
    if verdict.points is None:
        why = "the grader itself failed here: set these points by hand"
        return [
            {"output_type": "display_data", "data": html, "metadata": {}},
            {
                "output_type": "error",
                "ename": "GraderFailed",
                "evalue": why,
                "traceback": [f"GraderFailed: {why}"],
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
    """Text for a page, on one line: an empty line would end the HTML around it."""
    return escape(" ".join(safe(text).split()))


def _words(text: str) -> str:
    """Text for a comment, with every tag and link made harmless."""
    return TAG.sub("&lt;", " ".join(safe(text).split())).replace("](", "] (")


def plain_points(points: float, max_points: float) -> str:
    """Points as nbgrader reads them: digits, between 0 and `max_points`."""
    return repr(min(max(float(points), 0.0), float(max_points)))
