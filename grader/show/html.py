"""The report as HTML for a notebook: small, without scripts, with every stranger's text escaped.

No text has its own colour or background, so it is readable in any theme; a coloured edge only
repeats what a word says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby
from types import MappingProxyType

from grader.show.failure import (
    NOT_YOURS,
    TOO_SLOW,
    essence,
    others_line,
    perhaps_earlier,
    why_it_waits,
)
from grader.show.markdown import INLINE, Kind, blocks
from grader.show.scoreboard import VISIBLE_PASS, skipped_lines, standing
from grader.show.screen import amount, count
from grader.types.report import Cause, CheckResult, Diagnosis, Outcome, Report, StageResult, Status
from grader.types.text import is_unloaded, safe, what_it_did

_SHOWN = 3  # reasons to show; the reader can open the others
_LINES = 40
_LETTERS = 4000

_EDGE = {
    Status.PASSED: ("✓", "#2e8b57"),
    Status.FAILED: ("✗", "#cc4125"),
    Status.NOT_STARTED: ("·", "#888888"),
    Status.ERROR: ("!", "#8e5bb5"),
}
_WAITING = ("↑", "#b8860b")
_CELL = "text-align:left;padding:.15em .8em .15em 0"
# Some themes break lines in the middle of a word.
# A page that nbconvert exports draws <pre> in the font around it, and columns need this one.
MONOSPACE = "font-family:monospace"
# Begins a line that opens something. The style of the classic Notebook would hide its mark.
SUMMARY = '<summary style="display:list-item;cursor:pointer">'
_WRAPPED = f"{MONOSPACE};white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere"
_TO_BEGIN = "Put your code in place of <code>raise NotImplementedError</code> and rerun the cell."
_MORE_RUN = "These are your visible checks; more checks run on submission."


def verdict_html(report: Report, beside: Mapping[str, str]) -> str:
    """For one stage: why it fails, and the HTML in `beside` for its slug.

    For several stages: the scoreboard, then the same for each failing stage.
    """
    parts, shown = ["<div>"], report.stages
    if len(shown) > 1:
        parts.append(scoreboard_html(report))
        shown = tuple(stage for stage in shown if stage.status in (Status.FAILED, Status.ERROR))
    for stage in shown:
        parts.append(stage_html(report, stage, beside.get(stage.slug, "")))
    told = tuple(stage.why_not_started for stage in shown if stage.why_not_started)
    notes = [note for note in report.notes if not (told and note.endswith(told))]
    notes = [*skipped_lines(report), *notes]
    if notes:
        parts.append(f"<p><small>{'<br>'.join(_text(note) for note in notes)}</small></p>")
    return "".join(parts) + "</div>"


def markdown_html(text: str) -> str:
    """Simple markdown, as in `Page.markdown`; everything else stays text."""
    parts = []
    for kind, group in groupby(blocks(safe(text)), lambda block: block.kind):
        texts = [block.text for block in group]
        if kind is Kind.CODE:
            parts.append(_pre("\n".join(texts)))
        elif kind is Kind.ITEM:
            parts.append(f"<ul>{''.join(f'<li>{inline_html(each)}</li>' for each in texts)}</ul>")
        elif kind is Kind.HEADING:
            parts += [f"<p><strong>{inline_html(each)}</strong></p>" for each in texts]
        elif kind is Kind.PARAGRAPH:
            parts += [f"<p>{inline_html(each)}</p>" for each in texts]
    return "".join(parts)


def inline_html(text: str) -> str:
    """One paragraph of simple markdown: only `code` and **bold** are styled."""
    parts = []
    for part in INLINE.split(safe(text)):
        if part.startswith("`") and part.endswith("`") and len(part) > 2:
            parts.append(f"<code>{escape(part.strip('`').strip())}</code>")
        elif part.startswith("**") and part.endswith("**") and len(part) > 4:
            parts.append(f"<strong>{escape(part[2:-2])}</strong>")
        else:
            parts.append(escape(part))
    return "".join(parts)


# --- the stages --------------------------------------------------------------------------------


def scoreboard_html(report: Report, anchors: Mapping[str, str] = MappingProxyType({})) -> str:
    """The stages, each with a link to its anchor if `anchors` has one by slug, and the total."""

    def title(stage: StageResult) -> str:
        words, anchor = _text(stage.title), anchors.get(stage.slug)
        return f'<a href="#{_text(anchor)}">{words}</a>' if anchor else words

    rows = "".join(
        f'<tr><td style="{_CELL}">{look(stage)[0]}</td>'
        f'<td style="{_CELL}">{title(stage)}</td>'
        f'<td style="{_CELL}"><code>{_text(stage.slug)}</code></td>'
        f'<td style="{_CELL}">{_points(stage)}</td>'
        f'<td style="{_CELL}">{_standing(stage)}</td></tr>'
        for stage in report.stages
    )
    bonus = f", and {amount(report.bonus)} bonus points" if report.bonus else ""
    total = f"{amount(report.score)} of {amount(report.max_score)} points{bonus}"
    return (
        f'<table style="border-collapse:collapse"><caption>{_text(report.whole_name)}</caption>'
        f"<tbody>{rows}</tbody></table>"
        f'<p style="margin:.6em 0"><strong>Total: {total}</strong></p>'
        + (f"<p>{_MORE_RUN}</p>" if report.is_partial else "")
    )


def stage_html(report: Report, stage: StageResult, more: str, not_started: str = _TO_BEGIN) -> str:
    """A stage's section, with `more` at its end."""
    parts = [_stage_opening(stage)]
    if stage.status is Status.NOT_STARTED:
        parts.append(f"<p>{_text(stage.why_not_started) or not_started}</p>")
    elif stage.status is not Status.PASSED:
        parts.extend(_failures(report, stage))
    elif stage.is_partial:
        words = VISIBLE_PASS if stage.checks else "Its checks run on submission; none is visible."
        parts.append(f"<p>{words}</p>")
    if stage.printed.strip():
        parts.append(details_html(f"Your code {what_it_did(stage.printed)}", _pre(stage.printed)))
    return "".join([*parts, more]) + "</section>"


def _stage_opening(stage: StageResult) -> str:
    mark, colour = look(stage)
    name = f"<strong>{mark} {_text(stage.title)}</strong> <code>{_text(stage.slug)}</code>"
    return (
        f'<section style="border-left:4px solid {colour};padding-left:.8em;margin:.6em 0">'
        f"<p>{name}: {_standing(stage)}, {_points(stage)}</p>"
    )


def look(stage: StageResult) -> tuple[str, str]:
    """The mark of a stage, and the colour of the edge beside it."""
    return _WAITING if stage.caused_by is not None else _EDGE[stage.status]


def _standing(stage: StageResult) -> str:
    return "waiting" if stage.caused_by is not None else standing(stage)


def _points(stage: StageResult) -> str:
    bonus = " bonus" if stage.bonus else ""
    return f"{amount(stage.score)} / {amount(stage.max_score)}{bonus} points"


def _failures(report: Report, stage: StageResult) -> Iterator[str]:
    if stage.caused_by is not None:
        why, advice = why_it_waits(report, stage)
        yield f"<p>{inline_html(why)} {advice} that one first.</p>"
        return
    causes = stage.causes
    bad = sum(len(cause.checks) for cause in causes)
    checks = [check for check in stage.checks if check.outcome is not Outcome.SKIPPED]
    if bad:
        verb = "does" if bad == 1 else "do"
        yield f"<p>{bad} of {count(len(checks))} {verb} not pass yet.</p>"
    elif stage.status is Status.ERROR:
        yield f"<p>{NOT_YOURS}</p>"
    if words := perhaps_earlier(stage):
        yield f"<p>{inline_html(words)}</p>"
    shown = [_cause(cause) for cause in causes]
    yield from shown[:_SHOWN]
    if shown[_SHOWN:]:
        left = sum(len(cause.checks) for cause in causes[_SHOWN:])
        yield details_html(count(left, "more failing check"), "".join(shown[_SHOWN:]))


def titles_html(cause: Cause) -> str:
    """The titles of a cause's checks, a line each, with the points that they lost."""
    if is_unloaded(cause.show.message):
        points = f" (-{count(cause.lost, 'point')})" if cause.lost > 0 else ""
        return f"✗ <strong>{count(len(cause.checks), 'check')} could not run</strong>{points}"
    return _titles(cause.checks)


def _titles(checks: Sequence[CheckResult]) -> str:
    lines = []
    for check in checks:
        lost = check.max_score - check.score
        points = f" (-{count(lost, 'point')})" if lost > 0 else ""
        lines.append(f"✗ <strong>{inline_html(check.title)}</strong>{points}")
    return "<br>".join(lines)


def _cause(cause: Cause) -> str:
    """One check in full. The others that fail because of the same mistake can be opened."""
    check = cause.show
    others = () if is_unloaded(check.message) else cause.others
    body = [f"<p>{titles_html(replace(cause, others=()) if others else cause)}</p>"]
    if check.outcome is Outcome.ERROR:
        body.append(f"<p>{NOT_YOURS}</p>")
    elif check.outcome is Outcome.TIMEOUT:
        body.append(f"<p>{TOO_SLOW}</p>")
    found = check.diagnosis
    if found is not None:
        body.append(f'<p style="margin:.6em 0">{diagnosis_html(found)}</p>')
        if found.place:
            body.append(_pre(found.place))
    message = essence(check)
    if message.strip():
        body.append(_pre(message))
    if others:
        body.append(details_html(others_line(cause), f"<p>{_titles(others)}</p>"))
    return "".join(body)


def diagnosis_html(found: Diagnosis) -> str:
    """Why a check fails, in a sentence."""
    opening = f"<strong>{found.opening.strip()}</strong> " if found.opening else ""
    return opening + inline_html(found.text)


# --- small pieces ------------------------------------------------------------------------------


def details_html(summary: str, body: str, *, is_indented: bool = True) -> str:
    """A part that the reader can open."""
    left = "1em" if is_indented else "0"
    return (
        '<details style="margin:.6em 0">'
        f"{SUMMARY}{escape(summary)}</summary>"
        f'<div style="margin:.6em 0 0 {left}">{body}</div></details>'
    )


def _pre(text: str) -> str:
    """Unchanged text, cut to a reasonable length."""
    text = safe(text).strip("\n").rstrip()
    kept = "\n".join(text[:_LETTERS].split("\n")[:_LINES])
    more = "\n... and more" if len(kept) < len(text) else ""
    return f'<pre style="{_WRAPPED}">{escape(kept + more)}</pre>'


def _text(text: str) -> str:
    return escape(safe(text))
