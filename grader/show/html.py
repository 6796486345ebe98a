"""The report as HTML for a notebook: small, without scripts, and all that strangers wrote escaped.

No text has a colour or a background of its own, so it can be read in any theme; a coloured edge
only repeats what a word says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from grader.show.heatmap_html import heatmap_html
from grader.show.screen import FENCE, HEADING, INLINE, ITEM, amount, count
from grader.show.terminal import NOT_YOURS, TOO_SLOW, VISIBLE_PASS, failures, standing
from grader.types.hints import Hints
from grader.types.report import CheckResult, Diagnosis, Outcome, Report, StageResult, Status
from grader.types.text import safe
from grader.types.trace import TracedHeatmap

_SHOWN = 3  # reasons that are shown at once; the others can be opened
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
_WRAPPED = "white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere"
_MORE_RUN = "These are your visible checks; more checks run on submission."


@dataclass(frozen=True)
class StageAids:
    """What can be opened beside a stage's result: its hints, and what its example shows."""

    hints: Hints | None = None
    heatmap: TracedHeatmap | None = None


def verdict_html(report: Report, aids: Mapping[str, StageAids]) -> str:
    """One stage: why it fails and its hints, or what was learnt.

    Several: the scoreboard, then the same of those that fail.
    """
    parts, shown = ["<div>"], report.stages
    if len(shown) > 1:
        parts.append(_scoreboard(report))
        shown = tuple(stage for stage in shown if stage.status in (Status.FAILED, Status.ERROR))
    for stage in shown:
        parts.append(_stage(report, stage, aids.get(stage.slug, StageAids())))
    notes = [*_skipped(report), *report.notes]
    if notes:
        parts.append(f"<p><small>{'<br>'.join(_text(note) for note in notes)}</small></p>")
    return "".join(parts) + "</div>"


def scoreboard_html(report: Report) -> str:
    """The stages, their points and the total, for the top of a page where each stage has a cell.

    Each stage leads to what has the stage's slug as its name.
    """
    return f'<div class="scoreboard">{_scoreboard(report, with_links=True)}</div>'


def feedback_html(report: Report, stage: StageResult) -> str:
    """What a student is told of a stage that was handed in: no hints, but which to ask for."""
    parts = [_stage_opening(stage)]
    if stage.status is Status.NOT_STARTED:
        parts.append("<p>Nothing is written here yet.</p>")
    elif stage.status is not Status.PASSED:
        parts.extend(_failures(report, stage))
    if stage.printed.strip():
        parts.append(_details("Your code printed", _pre(stage.printed)))
    if stage.status is Status.FAILED and stage.caused_by is None:
        advised = stage.advised
        which = f", where hint {advised.hint} speaks to this mistake" if advised else ""
        parts.append(
            f"<p>To go on: <code>grade hint {_text(stage.slug)}</code>{which}. "
            "You can mend it and grade it again for yourself.</p>"
        )
    return "".join(parts) + "</section>"


def markdown_html(text: str) -> str:
    """Simple markdown, as `Page.markdown` knows it; whatever else there is stays text."""
    return "".join(_blocks(safe(text).strip("\n").split("\n")))


def inline_html(text: str) -> str:
    """One paragraph of it: `code` and **bold** are drawn, nothing else is."""
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


def _scoreboard(report: Report, *, with_links: bool = False) -> str:
    def title(stage: StageResult) -> str:
        words = _text(stage.title)
        return f'<a href="#{_text(stage.slug)}">{words}</a>' if with_links else words

    rows = "".join(
        f'<tr><td style="{_CELL}">{_look(stage)[0]}</td>'
        f'<td style="{_CELL}">{title(stage)}</td>'
        f'<td style="{_CELL}"><code>{_text(stage.slug)}</code></td>'
        f'<td style="{_CELL}">{_points(stage)}</td>'
        f'<td style="{_CELL}">{_standing(stage)}</td></tr>'
        for stage in report.stages
    )
    bonus = f", and {amount(report.bonus)} bonus points" if report.bonus else ""
    total = f"{amount(report.score)} of {amount(report.max_score)} points{bonus}"
    return (
        f'<table style="border-collapse:collapse"><caption>{_text(report.course)}</caption>'
        f"<tbody>{rows}</tbody></table>"
        f'<p style="margin:.6em 0"><strong>Together: {total}</strong></p>'
        + (f"<p>{_MORE_RUN}</p>" if report.is_partial else "")
    )


def _stage(report: Report, stage: StageResult, aids: StageAids) -> str:
    parts = [_stage_opening(stage)]
    if stage.status is Status.NOT_STARTED:
        parts.append(
            "<p>Put your code in place of <code>raise NotImplementedError</code> and run the cell "
            "again.</p>"
        )
    elif stage.status is not Status.PASSED:
        parts.extend(_failures(report, stage))
    elif stage.is_partial:
        said = VISIBLE_PASS if stage.checks else "No check is visible: graded on submission."
        parts.append(f"<p>{said}</p>")
    if stage.printed.strip():
        parts.append(_details("Your code printed", _pre(stage.printed)))
    if aids.heatmap is not None:
        parts.append(_details("What your code makes of an example", heatmap_html(aids.heatmap)))
    if aids.hints is not None:
        if stage.status is Status.PASSED:
            parts.append(_aftermath(aids.hints))
        elif stage.status is not Status.ERROR and stage.caused_by is None:
            parts.append(_ladder(aids.hints, stage.advised))
    return "".join(parts) + "</section>"


def _stage_opening(stage: StageResult) -> str:
    mark, colour = _look(stage)
    name = f"<strong>{mark} {_text(stage.title)}</strong> <code>{_text(stage.slug)}</code>"
    return (
        f'<section style="border-left:4px solid {colour};padding-left:.8em;margin:.6em 0">'
        f"<p>{name}: {_standing(stage)}, {_points(stage)}</p>"
    )


def _look(stage: StageResult) -> tuple[str, str]:
    """The mark of a stage, and the colour of the edge beside it."""
    return _WAITING if stage.caused_by is not None else _EDGE[stage.status]


def _standing(stage: StageResult) -> str:
    return "waiting" if stage.caused_by is not None else standing(stage)


def _points(stage: StageResult) -> str:
    bonus = " bonus" if stage.bonus else ""
    return f"{amount(stage.score)} / {amount(stage.max_score)}{bonus} points"


def _failures(report: Report, stage: StageResult) -> Iterator[str]:
    if stage.caused_by is not None:
        before = {other.slug: other.status for other in report.stages}.get(stage.caused_by)
        not_written = before is Status.NOT_STARTED
        yield (
            f"<p><code>{_text(stage.slug)}</code> fails only because it uses "
            f"<code>{_text(stage.caused_by)}</code>, which is not "
            f"{'written' if not_written else 'right'} yet. "
            f"{'Write' if not_written else 'Mend'} that one first.</p>"
        )
        return
    groups = failures(stage)
    bad = sum(len(group) for group in groups)
    checks = [check for check in stage.checks if check.outcome is not Outcome.SKIPPED]
    if bad:
        verb = "does" if bad == 1 else "do"
        yield f"<p>{bad} of {count(len(checks))} {verb} not pass yet.</p>"
    elif stage.status is Status.ERROR:
        yield f"<p>{NOT_YOURS}</p>"
    if stage.perhaps is not None:
        yield (
            f"<p>It uses <code>{_text(stage.perhaps)}</code>, which does not pass yet: that may be "
            "why, so begin there.</p>"
        )
    said: set[str] = set()
    shown = [_reason(group, said) for group in groups]
    yield from shown[:_SHOWN]
    if shown[_SHOWN:]:
        left = sum(len(group) for group in groups[_SHOWN:])
        yield _details(count(left, "more failing check"), "".join(shown[_SHOWN:]))


def _reason(group: Sequence[CheckResult], said: set[str]) -> str:
    """The checks that fail for one reason, and that reason; `said` are diagnoses given before."""
    parts = []
    for check in group:
        lost = check.max_score - check.score
        points = f" (-{count(lost, 'point')})" if lost > 0 else ""
        parts.append(f"✗ <strong>{inline_html(check.title)}</strong>{points}")
    body = [f"<p>{'<br>'.join(parts)}</p>"]
    check = group[0]
    if check.outcome is Outcome.ERROR:
        body.append(f"<p>{NOT_YOURS}</p>")
    elif check.outcome is Outcome.TIMEOUT:
        body.append(f"<p>{TOO_SLOW}</p>")
    if check.message.strip():
        body.append(_pre(check.message))
    found = check.diagnosis
    if found is not None:
        again = found.id in said
        said.add(found.id)
        likely = "the same as above" if again else inline_html(found.text)
        body.append(f'<p style="margin:.6em 0"><strong>Likely:</strong> {likely}</p>')
    return "".join(body)


def _skipped(report: Report) -> list[str]:
    checks = [check for stage in report.stages for check in stage.checks]
    skipped = [check.message for check in checks if check.outcome is Outcome.SKIPPED]
    reasons = ", ".join(sorted(filter(None, map(str.strip, set(skipped)))))
    why = f": {reasons}" if reasons else ""
    return [f"{count(len(skipped))} skipped, at no cost{why}"] if skipped else []


# --- hints -------------------------------------------------------------------------------------


def _ladder(hints: Hints, advised: Diagnosis | None) -> str:
    """Hints inside hints: opening one shows that there is a next. First the one for the mistake."""
    total, rung = len(hints.rungs), advised.hint if advised else None
    first = rung if rung is not None and 1 <= rung <= total else 1
    reason = ", for this mistake" if first == rung else ""
    ladder = _rungs(hints, first, total, f"A hint{reason}")
    if first > 1:
        ladder += _rungs(hints, 1, first - 1, "The hints before it")
    return ladder


def _rungs(hints: Hints, first: int, last: int, opening: str) -> str:
    """The rungs from `first` to `last`, each inside the one before."""
    total, inner = len(hints.rungs), ""
    for number in range(last, first - 1, -1):
        rung = hints.rungs[number - 1]
        summary = f"{opening if number == first else 'The next hint'} ({number} of {total})"
        heading = f"<p><strong>{inline_html(rung.heading)}</strong></p>"
        inner = _details(summary, heading + markdown_html(rung.text) + inner)
    return inner


def _aftermath(hints: Hints) -> str:
    parts = []
    if hints.learnt:
        parts.append(f"<p><strong>Learnt</strong></p>{markdown_html(hints.learnt)}")
    for heading, text in (("Why it is written so", hints.why), ("Read next", hints.read_next)):
        if text:
            parts.append(_details(heading, markdown_html(text)))
    return "".join(parts)


# --- small pieces ------------------------------------------------------------------------------


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    """Paragraphs, headings, lists and code of simple markdown."""
    paragraph: list[str] = []
    items: list[str] = []
    code: list[str] = []
    fence = ""

    def flush() -> Iterator[str]:
        if paragraph and items:
            items[-1] += " " + " ".join(paragraph)
        elif paragraph:
            yield f"<p>{inline_html(' '.join(paragraph))}</p>"
        paragraph.clear()
        if code:
            yield _pre("\n".join(code))
            code.clear()

    def close() -> Iterator[str]:
        yield from flush()
        if items:
            yield "<ul>" + "".join(f"<li>{inline_html(item)}</li>" for item in items) + "</ul>"
            items.clear()

    for line in lines:
        body = line.strip()
        if fence:
            if body == fence:
                yield _pre("\n".join(code))
                code.clear()
                fence = ""
            else:
                code.append(line)
        elif (opening := FENCE.match(body)) is not None:
            yield from close()
            fence = opening.group()
        elif not body:
            if code:
                code.append("")
            else:
                yield from close()
        elif line.startswith("|") or (line.startswith("    ") and not paragraph and not items):
            code.append(line.removeprefix("    "))
        elif (heading := HEADING.match(line)) is not None:
            yield from close()
            yield f"<p><strong>{inline_html(heading.group(1))}</strong></p>"
        elif (item := ITEM.match(line)) is not None:
            yield from flush()
            items.append(item.group(3))
        else:
            if code:
                yield from flush()
            paragraph.append(body)
    yield from close()


def _details(summary: str, body: str) -> str:
    """Something to open; what is in it stands a little to the right."""
    return (
        '<details style="margin:.6em 0">'
        f'<summary style="cursor:pointer">{escape(summary)}</summary>'
        f'<div style="margin:.6em 0 0 1em">{body}</div></details>'
    )


def _pre(text: str) -> str:
    """Text as it is, cut to a length that a page can bear."""
    text = safe(text).strip("\n").rstrip()
    kept = "\n".join(text[:_LETTERS].split("\n")[:_LINES])
    more = "\n... and more" if len(kept) < len(text) else ""
    return f'<pre style="{_WRAPPED}">{escape(kept + more)}</pre>'


def _text(text: str) -> str:
    return escape(safe(text))
