"""Traces and heatmaps as HTML: tables with numbers that a notebook, a browser or a reader shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

from grader.show.heatmap import are_shares, cell_format, is_light, limits
from grader.show.numbers import every, is_finite, number_format, short
from grader.show.trace import last_axes, left_out, place_of, sentences, stopped
from grader.types.text import safe
from grader.types.trace import Axis, Number, Rows, Trace, TracedCurves, TracedHeatmap, TracedStep

_CELL = "padding:.2em .6em;text-align:right;border:1px solid #ccc"
_NAME = "padding:.2em .6em;text-align:right;font-weight:normal"
_LIGHTEST, _DARKEST = (255, 255, 255), (8, 48, 107)


def trace_html(trace: Trace) -> str:
    """Every step of a trace with its numbers, and where it stopped."""
    parts = [f"<section><h3>{_text(trace.title)}</h3>"]
    for part in trace.parts:
        if isinstance(part, TracedStep):
            parts.extend(_step(part))
        elif isinstance(part, TracedHeatmap):
            parts.append(heatmap_html(part))
        elif isinstance(part, TracedCurves):
            parts.append(_curves(part))
        else:
            parts.append(f"<p>{_text(part)}</p>")
    if trace.printed:
        parts.append(f"<p>Your code printed:</p><pre>{_text(trace.printed)}</pre>")
    if trace.stop is not None:
        name, why = stopped(trace.stop)
        parts.append(f"<p>The trace ends here: <code>{_text(name)}</code> {_text(why)}</p>")
        if not trace.stop.not_written:
            parts.append(f"<pre>{_text(trace.stop.message)}</pre>")
    return "".join(parts) + "</section>"


def heatmap_html(heatmap: TracedHeatmap) -> str:
    """One table a panel: numbers on a background whose shade follows them."""
    show = cell_format(heatmap)
    low, high = limits(heatmap)

    def style(number: Number) -> str:
        if not is_finite(number):
            return _CELL
        return f"{_CELL};{_shaded((number - low) / (high - low))}"

    unit = ", in percent" if are_shares(heatmap) else ""
    tables = "".join(
        _table(
            caption=f"{name}: each row a {heatmap.row_axis}, each column a {heatmap.column_axis}",
            row_names=heatmap.rows,
            column_names=heatmap.columns,
            rows=rows,
            show=show,
            style=style,
        )
        for name, rows in heatmap.panels
    )
    return (
        f"<figure><figcaption>{_text(heatmap.title + unit)}</figcaption>"
        f'<div style="display:flex;flex-wrap:wrap;gap:1.5em">{tables}</div></figure>'
    )


def _curves(curves: TracedCurves) -> str:
    """The numbers of every curve, a row each."""
    return _table(
        caption=f"{curves.title}: {curves.y_axis} over {curves.x_axis}",
        row_names=[curve.name for curve in curves.curves],
        column_names=[f"{place:g}" for place in curves.x],
        rows=tuple(curve.numbers for curve in curves.curves),
        show=short,
        style=lambda number: _CELL,
    )


def _step(step: TracedStep) -> Iterator[str]:
    sizes = " ".join(
        f"{axis.size}" if axis.name in ("", "1") else f"{axis.name}={axis.size}"
        for axis in step.axes
    )
    yield f"<h4><code>{_text(step.name)}</code> {_text(sizes)}</h4>"
    for sentence in sentences(step):
        yield f"<p>{_text(sentence)}</p>"
    show = number_format(every(block.rows for block in step.blocks))
    yield '<div style="display:flex;flex-wrap:wrap;gap:1.5em">'
    for block in step.blocks:
        rows, columns = last_axes(step.axes)
        yield _table(
            caption=" ".join(filter(None, [step.name, place_of(step.axes, block)])),
            row_names=_names(rows, len(block.rows)),
            column_names=_names(columns, len(block.rows[0])),
            rows=block.rows,
            show=show,
            style=lambda number: _CELL,
        )
    yield "</div>"
    if (more := left_out(step)) is not None:
        yield f"<p>{_text(more)}</p>"


def _names(axis: Axis | None, shown: int) -> Sequence[str]:
    if axis is not None and axis.labels:
        return axis.labels[:shown]
    if axis is None or axis.size == 1:
        return [""] * shown
    return [f"{axis.name} {place}".strip() for place in range(shown)]


def _table(
    *,
    caption: str,
    row_names: Sequence[str],
    column_names: Sequence[str],
    rows: Rows,
    show: Callable[[Number], str],
    style: Callable[[Number], str],
) -> str:
    top = "".join(f'<th scope="col" style="{_NAME}">{_text(word)}</th>' for word in column_names)
    body = "".join(
        f'<tr><th scope="row" style="{_NAME}">{_text(word)}</th>'
        + "".join(f'<td style="{style(number)}">{_text(show(number))}</td>' for number in row)
        + "</tr>"
        for word, row in zip(row_names, rows, strict=True)
    )
    return (
        f'<table style="border-collapse:collapse"><caption>{_text(caption)}</caption>'
        f"<thead><tr><td></td>{top}</tr></thead><tbody>{body}</tbody></table>"
    )


def _shaded(share: float) -> str:
    """A background and a colour of the text that can be read on it."""
    background = [
        round(light + share * (dark - light))
        for light, dark in zip(_LIGHTEST, _DARKEST, strict=True)
    ]
    ink = "#000" if is_light(*(part / 255 for part in background)) else "#fff"
    return f"background:#{''.join(f'{part:02x}' for part in background)};color:{ink}"


def _text(text: str) -> str:
    return escape(safe(text))
