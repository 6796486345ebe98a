"""Draws a heatmap or curves with matplotlib, for a file. Imported only to write one.

The import raises KitError if matplotlib is not installed.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from grader.learning.pictures.heatmap import are_shares, cell_format, is_light, limits
from grader.learning.pictures.numbers import is_finite, short
from grader.learning.pictures.trace import place_of
from grader.learning.pictures.types import (
    Axis,
    Block,
    Number,
    Rows,
    Trace,
    TracedHeatmap,
    TracedStep,
)
from grader.tracing import Curves
from grader.types.errors import KitError
from grader.types.text import safe

try:
    from matplotlib import colormaps
    from matplotlib.figure import Figure as Figure  # the certificate's too
    from matplotlib.ticker import MaxNLocator, PercentFormatter
except ImportError as error:
    raise KitError(f"cannot write PNG or SVG: {error}: type `pip install matplotlib`") from None

_COLOURS = "viridis"  # even in lightness, also for colour-blind readers and in grey
_PANELS_BESIDE = 4
_CELL = 0.55  # inches
_LEVEL = 6  # characters: longer column names are turned
_DECADES = 30  # a range with such a ratio holds more than one power of ten
_LIGHT, _DARK = "white", "black"
_MARKS = "o^sD"
_INKS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # colour-blind readers can distinguish them


def figure(heatmap: TracedHeatmap) -> Figure:
    """The panels side by side, each cell with its number, on one colour scale."""
    count = len(heatmap.panels)
    columns = min(count, _PANELS_BESIDE)
    lines = math.ceil(count / columns)
    width = _CELL * len(heatmap.columns) + 1.2
    height = _CELL * len(heatmap.rows) + 1.2
    drawn = Figure(figsize=(columns * width + 1.2, lines * height + 0.6), layout="constrained")
    drawn.suptitle(literal(heatmap.title))
    percent = PercentFormatter(xmax=1) if are_shares(heatmap) else None
    plots = drawn.subplots(lines, columns, squeeze=False)
    used = list(plots.flat)[:count]
    for spare in list(plots.flat)[count:]:
        spare.set_axis_off()
    for plot, panel in zip(used, heatmap.panels, strict=True):
        image = draw_panel(plot, heatmap, panel)
    drawn.colorbar(image, ax=used, format=percent)
    return drawn


def steps_figure(trace: Trace) -> Figure:
    """The tables of an example's first step, and below them those of its last."""
    steps = [part for part in trace.parts if isinstance(part, TracedStep) and part.blocks]
    rows = [step.blocks[:_PANELS_BESIDE] for step in (steps[0], steps[-1])]
    width = max(sum(len(block.rows[0]) for block in blocks) for blocks in rows) * _CELL
    height = sum(len(blocks[0].rows) for blocks in rows) * _CELL
    drawn = Figure(figsize=(max(4.0, width + 3.0), height + 2.6), layout="constrained")
    drawn.suptitle(literal(trace.title))
    parts: Any = drawn.subfigures(len(rows), 1)
    for part, step, blocks in zip(parts, (steps[0], steps[-1]), rows, strict=True):
        plots = part.subplots(1, len(blocks), squeeze=False)[0]
        for plot, block in zip(plots, blocks, strict=True):
            table = _table_of(step, block)
            draw_panel(plot, table, table.panels[0])
    return drawn


def _table_of(step: TracedStep, block: Block) -> TracedHeatmap:
    """One table of a step as a picture of its own."""
    rows, columns = ((Axis("", 1), *step.axes)[-2:]) if step.axes else (Axis("", 1), Axis("", 1))
    return TracedHeatmap(
        step.name,
        ((f"{step.name} {place_of(step.axes, block)}".rstrip(), block.rows),),
        rows.labels or tuple(map(str, range(len(block.rows)))),
        columns.labels or tuple(map(str, range(len(block.rows[0])))),
        rows.name,
        columns.name,
    )


def draw_panel(plot: Any, heatmap: TracedHeatmap, panel: tuple[str, Rows]) -> Any:
    """Draw one panel on these axes; returns matplotlib's image."""
    (name, rows), (low, high), show = panel, limits(heatmap), cell_format(heatmap)
    cells = [[_cell(number) for number in row] for row in rows]
    image = plot.imshow(cells, cmap=_COLOURS, vmin=low, vmax=high)
    plot.set_title(literal(name))
    plot.set_xlabel(literal(heatmap.column_axis))
    plot.set_ylabel(literal(heatmap.row_axis))
    angle = 45 if max(map(len, heatmap.columns), default=0) > _LEVEL else 0
    words = [literal(word) for word in heatmap.columns]
    plot.set_xticks(range(len(words)), words, rotation=angle)
    plot.set_yticks(range(len(heatmap.rows)), [literal(word) for word in heatmap.rows])
    for i, row in enumerate(rows):
        for j, number in enumerate(row):
            colour = _ink((_cell(number) - low) / (high - low))
            plot.text(j, i, show(number), ha="center", va="center", color=colour)
    return image


def curves_figure(curves: Curves) -> Figure:
    """The curves as joined points, the guides as thin lines, on two logarithmic scales."""
    drawn = Figure(figsize=(6.4, 4.8), layout="constrained")
    draw_curves(drawn.subplots(), curves)
    return drawn


def draw_curves(plot: Any, curves: Curves) -> None:
    """Draw the curves on these axes."""
    plot.set_title(literal(curves.title))
    plot.set_xscale("log")
    plot.set_yscale("log")
    marks = zip(itertools.cycle(_MARKS), itertools.cycle(_INKS), strict=False)
    for (name, numbers), (mark, ink) in zip(curves.curves.items(), marks, strict=False):
        plot.plot(curves.x, numbers, marker=mark, color=ink, label=literal(name))
    for name, numbers in curves.guides.items():
        plot.plot(curves.x, numbers, ls=":", color="black", zorder=3)  # above the curves
        end = (curves.x[-1], numbers[-1])
        offset, across, down = (4, 0), "left", "center"
        if len(name) > _LEVEL:  # beside the line it would stick out of the frame
            offset, across, down = (0, 3), "right", "bottom"
        shown = literal(name)
        plot.annotate(shown, end, offset, textcoords="offset points", ha=across, va=down)
    plot.set_xticks(curves.x, [f"{place:g}" for place in curves.x])
    every = (*curves.curves.values(), *curves.guides.values())
    if max(map(max, every)) < _DECADES * min(map(min, every)):  # perhaps without a power of ten
        plot.yaxis.set_major_locator(MaxNLocator(6))
    plot.minorticks_off()
    plot.margins(x=0.08)  # room for the names of the guides
    plot.yaxis.set_major_formatter(lambda number, _: short(number))
    plot.set_xlabel(literal(curves.x_axis))
    plot.set_ylabel(literal(curves.y_axis))
    plot.legend()


def _cell(number: Number) -> float:
    return float(number) if is_finite(number) else math.nan  # stays white


def literal(text: str) -> str:
    """The text with each dollar sign escaped, because matplotlib would start a formula there."""
    return safe(text).replace("$", r"\$")


def _ink(share: float) -> str:
    """The colour of a number that is readable on its cell's colour."""
    if math.isnan(share):
        return _DARK
    red, green, blue, _ = colormaps[_COLOURS](share)
    return _DARK if is_light(red, green, blue) else _LIGHT
