"""A heatmap in the terminal: each cell is a number above a shade, so it needs no colour."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

from rich.cells import cell_len
from rich.text import Text

from grader.learning.pictures.numbers import every, is_finite, number_format
from grader.learning.pictures.types import Number, Rows, TracedHeatmap
from grader.show.screen import MARGIN, UNICODE, Page, count, framed

_SHADES = " ░▒▓█"
_ASCII_SHADES = " .:#@"
_LONGEST_LABEL = 8
_BETWEEN = 4  # cells between two grids
_UNROUNDED = 0.01  # half precision sums to 1 within this
_ROUNDING = 0.02  # in steps: a cell with 25 has the shade of a quarter, one with 0 is blank


def side_by_side(
    page: Page, grids: Sequence[Sequence[Text]], indent: int, *, in_pairs: bool = False
) -> Iterator[list[Text]]:
    """The lines of as many grids as fit beside each other, then those below; no pair is parted."""
    width = max((line.cell_len for grid in grids for line in grid), default=0)
    beside = max(1, (page.width - indent + _BETWEEN) // (width + _BETWEEN)) if width else 1
    if in_pairs and beside > 1:
        beside -= beside % 2
    for first in range(0, len(grids), beside):
        lines = []
        for row in zip_longest(*grids[first : first + beside], fillvalue=Text()):
            lines.append(Text(" " * indent))
            for number, piece in enumerate(row):
                lines[-1].append(" " * (_BETWEEN if number else 0)).append_text(piece)
                lines[-1].append(" " * (width - piece.cell_len))
        yield lines


@framed
def heatmap_screen(page: Page, heatmap: TracedHeatmap) -> Iterator[Text]:
    """The grids of a heatmap, side by side if they fit, and a legend."""
    yield from page.sentence(page.word(heatmap.title), "bold")
    yield Text()
    if page.plain:
        for fact in _facts(heatmap):
            yield from page.sentence(page.clean(fact))
        yield from _odd_sums(page, heatmap)
        return
    grids = [_grid(page, heatmap, name, rows) for name, rows in heatmap.panels]
    for lines in side_by_side(page, grids, MARGIN):
        yield from lines
        yield Text()
    yield from page.sentence(page.clean(_legend(page, heatmap)), "dim")
    yield from _odd_sums(page, heatmap)


def are_shares(heatmap: TracedHeatmap) -> bool:
    """Whether all numbers are between 0 and 1; they are then shown in percent."""
    numbers = every(rows for _, rows in heatmap.panels)
    return all(is_finite(number) and 0 <= number <= 1 for number in numbers)


def cell_format(heatmap: TracedHeatmap) -> Callable[[Number], str]:
    """The format of a heatmap's numbers: in percent if they are shares."""
    if are_shares(heatmap):
        return lambda number: f"{100 * number:.0f}"
    return number_format(every(rows for _, rows in heatmap.panels))


def limits(heatmap: TracedHeatmap) -> tuple[float, float]:
    """The numbers of the lightest and the darkest shade; they always differ."""
    if are_shares(heatmap):
        return 0.0, 1.0
    finite = [number for number in every(rows for _, rows in heatmap.panels) if is_finite(number)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    return (low, high) if low < high else (low, low + 1)


def description(heatmap: TracedHeatmap) -> str:
    """All numbers of a heatmap in words."""
    return " ".join(f"{fact}." for fact in _facts(heatmap))


def _odd_sums(page: Page, heatmap: TracedHeatmap) -> Iterator[Text]:
    """A sentence if rows of weights do not sum to 100 percent. A row of zeros is hidden.

    Numbers that are only 0 and 1 are marks, not weights.
    """
    shares = [float(number) for number in every(rows for _, rows in heatmap.panels)]
    if not are_shares(heatmap) or all(share in (0.0, 1.0) for share in shares):
        return
    odd = [
        f"{name}, {word}: {100 * total:.0f}"
        for name, rows in heatmap.panels
        for word, row in zip(heatmap.rows, rows, strict=True)
        if (total := math.fsum(row)) and abs(total - 1) > _UNROUNDED
    ]
    if odd:
        words = f"{count(len(odd), 'row')} {'does' if len(odd) == 1 else 'do'} not sum to 100; "
        words += f"the first is {odd[0]}."
        yield from page.sentence(page.clean(words), "yellow")


def is_light(red: float, green: float, blue: float) -> bool:
    """Whether black reads better than white on this sRGB colour, its parts from 0 to 1."""
    amounts = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (red, green, blue)
    ]
    return 0.2126 * amounts[0] + 0.7152 * amounts[1] + 0.0722 * amounts[2] > 0.179


def _facts(heatmap: TracedHeatmap) -> Iterator[str]:
    show = cell_format(heatmap)
    unit = " percent" if are_shares(heatmap) else ""
    for name, rows in heatmap.panels:
        for row, numbers in zip(heatmap.rows, rows, strict=True):
            for column, number in zip(heatmap.columns, numbers, strict=True):
                yield f"{name}, {row} to {column}: {show(number)}{unit}"


def _grid(page: Page, heatmap: TracedHeatmap, name: str, rows: Rows) -> list[Text]:
    """The lines of one panel: its name, the columns, then two lines a row."""
    show = cell_format(heatmap)
    row_labels = [page.word(word, _LONGEST_LABEL) for word in heatmap.rows]
    names = [page.word(word, _LONGEST_LABEL) for word in heatmap.columns]
    label = max(map(cell_len, row_labels), default=0)
    texts = [[show(number) for number in row] for row in rows]
    cell = max(3, *(len(text) for row in texts for text in row), *map(cell_len, names))
    room = max(1, (page.width - MARGIN - label) // (cell + 1))
    header = "".join(" " + " " * (cell - cell_len(word)) + word for word in names[:room])
    lines = [Text(page.word(name), "bold"), Text(" " * label + header, "dim")]
    for word, row, written in zip(row_labels, rows, texts, strict=True):
        line = Text(word + " " * (label - cell_len(word)), "dim")
        lines.append(line.append("".join(f" {text:>{cell}}" for text in written[:room])))
        shades = "".join(" " + _shade(page, heatmap, number) * cell for number in row[:room])
        lines.append(Text(" " * label).append(shades, "blue"))
    if len(names) > room:
        lines.append(Text(f"{page.glyphs.more} {count(len(names) - room, 'more column')}", "dim"))
    return lines


def _shade(page: Page, heatmap: TracedHeatmap, number: Number) -> str:
    if not is_finite(number):
        return "?" if number != number else " "
    low, high = limits(heatmap)
    shades = _shades(page)
    steps = (number - low) / (high - low) * (len(shades) - 1)
    return shades[math.ceil(steps - _ROUNDING)]


def _shades(page: Page) -> str:
    return _SHADES if page.glyphs is UNICODE else _ASCII_SHADES


def _legend(page: Page, heatmap: TracedHeatmap) -> str:
    low, high = limits(heatmap)
    shades = _shades(page)[1:]
    if are_shares(heatmap):
        steps = [f"{sign} to {100 * n // len(shades)}" for n, sign in enumerate(shades, start=1)]
        scale = f"Numbers are percent, shades: blank 0, {', '.join(steps)}."
    else:
        show = number_format([low, high])
        scale = f"Shades from blank ({show(low)}) to {shades[-1]} ({show(high)})."
    return f"{scale} Each row is a {heatmap.row_axis}, each column a {heatmap.column_axis}."
