"""A heatmap as HTML tables of numbers, for notebooks, browsers and screen readers."""

from __future__ import annotations

from html import escape

from grader.learning.pictures.heatmap import are_shares, cell_format, is_light, limits
from grader.learning.pictures.numbers import is_finite
from grader.learning.pictures.types import Number, Rows, TracedHeatmap
from grader.types.text import safe

_CELL = "padding:.2em .6em;text-align:right;border:1px solid #ccc"
_NAME = "padding:.2em .6em;text-align:right;font-weight:normal"
_LIGHTEST, _DARKEST = (255, 255, 255), (8, 48, 107)


def heatmap_html(heatmap: TracedHeatmap) -> str:
    """One table for each panel; the background of each number shows its size."""
    unit = ", in percent" if are_shares(heatmap) else ""
    tables = "".join(_table(heatmap, name, rows) for name, rows in heatmap.panels)
    return (
        f"<figure><figcaption>{_text(heatmap.title + unit)}</figcaption>"
        f'<div style="display:flex;flex-wrap:wrap;gap:1.5em">{tables}</div></figure>'
    )


def _table(heatmap: TracedHeatmap, name: str, rows: Rows) -> str:
    show, (low, high) = cell_format(heatmap), limits(heatmap)

    def style(number: Number) -> str:
        if not is_finite(number):
            return _CELL
        return f"{_CELL};{_shaded((number - low) / (high - low))}"

    caption = f"{name}: each row a {heatmap.row_axis}, each column a {heatmap.column_axis}"
    columns, named = heatmap.columns, zip(heatmap.rows, rows, strict=True)
    top = "".join(f'<th scope="col" style="{_NAME}">{_text(word)}</th>' for word in columns)
    body = "".join(
        f'<tr><th scope="row" style="{_NAME}">{_text(word)}</th>'
        + "".join(f'<td style="{style(number)}">{_text(show(number))}</td>' for number in row)
        + "</tr>"
        for word, row in named
    )
    return (
        f'<table style="border-collapse:collapse"><caption>{_text(caption)}</caption>'
        f"<thead><tr><td></td>{top}</tr></thead><tbody>{body}</tbody></table>"
    )


def _shaded(share: float) -> str:
    """A background colour, and a text colour that is readable on it."""
    background = [
        round(light + share * (dark - light))
        for light, dark in zip(_LIGHTEST, _DARKEST, strict=True)
    ]
    ink = "#000" if is_light(*(part / 255 for part in background)) else "#fff"
    return f"background:#{''.join(f'{part:02x}' for part in background)};color:{ink}"


def _text(text: str) -> str:
    return escape(safe(text))
