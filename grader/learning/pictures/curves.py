"""Curves in the terminal: points on two logarithmic scales, and guides as rows of dots."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from grader.learning.pictures.numbers import short
from grader.show.screen import MARGIN, UNICODE, Page
from grader.tracing import Curves

# The marks of curves, the sign where points of several fall into one cell, and a guide's dot.
_SIGNS, _ASCII_SIGNS = ("●▲■◆", "◎", "·"), ("ox*+", "@", ".")
_HEIGHT, _WIDEST = 16, 56
_LABELLED = 5  # lines of the plot between two numbers at its side
_LONGEST_NAME = 16


def curves_lines(page: Page, curves: Curves) -> Iterator[Text]:
    """The lines of a plot; for a screen reader, its numbers one by one."""
    yield from page.sentence(page.word(curves.title), "bold")
    if page.plain:
        for fact in facts(curves):
            yield from page.sentence(page.clean(fact))
        return
    yield from _Plot(page, curves).lines()


def facts(curves: Curves) -> Iterator[str]:
    """Every number in words; a level guide once."""
    for name, numbers in (*curves.curves.items(), *curves.guides.items()):
        if numbers == curves.guides.get(name) and len(set(numbers)) == 1:
            yield f"{name}: {short(numbers[0])} {curves.y_axis} throughout"
            continue
        for place, number in zip(curves.x, numbers, strict=True):
            yield f"{name}, {curves.x_axis} {place:g}: {short(number)} {curves.y_axis}"


class _Plot:
    """The layout of a plot on the page."""

    def __init__(self, page: Page, curves: Curves) -> None:
        self._page = page
        self._curves = curves
        signs = _SIGNS if page.glyphs is UNICODE else _ASCII_SIGNS
        marks, self._shared, self._dot = signs
        self._marked = list(zip(itertools.cycle(marks), curves.curves))
        every = (*curves.curves.values(), *curves.guides.values())
        self._x = _Scale(curves.x)
        self._y = _Scale([number for numbers in every for number in numbers])
        self._names = [page.word(name, _LONGEST_NAME) for name in curves.guides]
        numbers = [short(self._y.number(row / (_HEIGHT - 1))) for row in range(_HEIGHT)]
        self._side = max(map(len, numbers)) + 1
        taken = MARGIN + self._side + 2 + max(map(cell_len, self._names), default=0) + 1
        self._width = max(8, min(_WIDEST, page.width - taken))

    def lines(self) -> Iterator[Text]:
        cells = self._cells()
        ends = self._ends()
        yield Text(" " * MARGIN).append(self._page.word(self._curves.y_axis), "dim")
        for row in reversed(range(_HEIGHT)):
            number = short(self._y.number(row / (_HEIGHT - 1))) if row % _LABELLED == 0 else ""
            line = Text(" " * MARGIN).append(f"{number:>{self._side - 1}} ", "dim")
            line.append(f"{self._page.glyphs.gutter}", "dim")
            for sign in cells[row]:
                line.append(sign, "dim" if sign == self._dot else "cyan")
            yield line.append(f" {ends[row]}" if row in ends else "", "dim")
        yield Text(" " * (MARGIN + self._side + 1)).append(self._places(), "dim")
        words = [f"{mark} {name}" for mark, name in self._marked]
        if any(self._shared in row for row in cells):
            words.append(f"{self._shared} {'both' if len(words) == 2 else 'several'}")
        legend, across = "   ".join(words), f"across: {self._curves.x_axis}"
        fits = MARGIN + cell_len(f"{legend}   {across}") <= self._page.width
        for said in (f"{legend}   {across}",) if fits else (legend, across):
            yield from self._page.sentence(self._page.clean(said))

    def _cells(self) -> list[list[str]]:
        cells = [[" "] * self._width for _ in range(_HEIGHT)]
        for guide in self._curves.guides.values():
            for column in range(self._width):
                row = self._row(self._between(guide, column / (self._width - 1)))
                cells[row][column] = self._dot
        for mark, name in self._marked:
            for place, number in zip(self._curves.x, self._curves.curves[name], strict=True):
                row, column = self._row(self._y.share(number)), self._column(place)
                is_free = cells[row][column] in (" ", self._dot, mark)
                cells[row][column] = mark if is_free else self._shared
        return cells

    def _between(self, guide: Sequence[float], share: float) -> float:
        """A guide's height at a share of the width, by a straight line between two places."""
        import numpy

        pairs = zip(self._curves.x, guide, strict=True)
        points = sorted((self._x.share(place), self._y.share(number)) for place, number in pairs)
        places, heights = zip(*points, strict=True)
        return float(numpy.interp(share, places, heights))

    def _ends(self) -> dict[int, str]:
        """The name of each guide, at the row where it ends or at the nearest free row."""
        ends: dict[int, str] = {}
        for guide, name in zip(self._curves.guides.values(), self._names, strict=True):
            row = self._row(self._y.share(guide[-1]))
            free = [other for other in range(_HEIGHT) if other not in ends]
            if free:
                ends[min(free, key=lambda other: abs(other - row))] = name
        return ends

    def _places(self) -> str:
        """The numbers below the plot: the first, the last, and as many as fit between them."""
        texts = [f"{place:g}" for place in self._curves.x]
        starts = [
            max(0, min(self._column(place), self._width - len(text)))
            for place, text in zip(self._curves.x, texts, strict=True)
        ]
        line = ""
        for number, (start, text) in enumerate(zip(starts, texts, strict=True), 1):
            end = self._width if number == len(texts) else starts[-1] - 1
            if not line or len(line) < start <= end - len(text):
                line = line.ljust(start) + text
        return line

    def _row(self, share: float) -> int:
        return round(share * (_HEIGHT - 1))

    def _column(self, place: float) -> int:
        return round(self._x.share(place) * (self._width - 1))


class _Scale:
    """A logarithmic scale from the smallest to the largest of some numbers."""

    def __init__(self, numbers: Sequence[float]) -> None:
        self._low = math.log(min(numbers))
        self._room = math.log(max(numbers)) - self._low

    def share(self, number: float) -> float:
        """The position of a number on the scale, from 0 to 1."""
        return (math.log(number) - self._low) / self._room if self._room else 0.5

    def number(self, share: float) -> float:
        """The number at this position."""
        return math.exp(self._low + share * self._room)
