"""A trace on the screen: each step's name, axes and numbers, then where the trace stopped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.text import Text

from grader.learning.pictures.compare import Compared, Comparison, Place, compare
from grader.learning.pictures.curves import curves_lines
from grader.learning.pictures.heatmap import side_by_side
from grader.learning.pictures.numbers import every, number_format
from grader.learning.pictures.types import (
    Axis,
    Block,
    Number,
    Trace,
    TracedHeatmap,
    TracedStep,
)
from grader.show.screen import MARGIN, Page, count, screen
from grader.tracing import Curves
from grader.types.text import what_it_did

_BODY = MARGIN + 2
_LONGEST_LABEL = 12
_STOP_LINES = 12
_PRINTED_LINES = 8
_CHANGED = "~"


@screen
def trace_screen(
    page: Page,
    trace: Trace,
    right: Trace | None = None,
    before: Trace | None = None,
    *,
    wrong_first: bool = False,
    offers: bool = True,
) -> Iterator[Text]:
    """Every step of a trace, what the learner's code printed, and the next thing to type.

    With the solution's trace `right`, wrong numbers are marked and the right ones stand beside
    them; with `before`, the numbers that the last save changed are marked too. If `wrong_first`, as
    in `grade watch`, the first wrong step also stands above all others, instead of the title.
    No next command is offered there, nor without `offers`, as in a notebook.
    """
    yield Text()
    if not wrong_first:
        title = Text().append(page.word(trace.title), "bold")
        yield from page.sentence(title.append(f"   trace of {page.word(trace.slug)}", "dim"))
    compared = compare(trace, right, before)
    yield from _in_short(page, trace, compared)
    if wrong_first and compared.first_wrong is not None:
        yield Text()
        number = trace.parts.index(compared.first_wrong)
        yield from _step(page, compared.first_wrong, compared.steps[number] or Compared())
        yield Text()
        yield from page.sentence("The whole example:", "dim")
    for part, beside in zip(trace.parts, compared.steps, strict=True):
        yield Text()
        if isinstance(part, TracedStep):
            yield from _step(page, part, beside or Compared())
        elif isinstance(part, TracedHeatmap):
            command = "grade heatmap" if offers else "%heatmap"
            yield from page.offer("As a picture:", f"{command} {trace.slug}")
        elif isinstance(part, Curves):
            yield from curves_lines(page, part)
        else:
            yield from page.sentence(page.inline(part))
    if trace.printed:
        yield Text()
        yield from page.sentence(f"Your code {what_it_did(trace.printed)}:", "dim")
        lines, more = page.verbatim(trace.printed, _BODY, gutter=True, limit=_PRINTED_LINES)
        yield from lines
        if more:
            yield from page.wrap(Text(f"{page.glyphs.more} {more} more", "dim"), _BODY)
    offers = offers and not wrong_first
    yield from stop_screen(trace, offers=offers).draw(page)
    first = compared.first_wrong
    if first is not None and trace.to_fix is None and offers:
        yield from _offers(page, first.slug or trace.slug)


@screen
def stop_screen(page: Page, trace: Trace, *, offers: bool = True) -> Iterator[Text]:
    """Only why a trace ended early and, with `offers`, what to type next."""
    yield Text()
    if (stop := trace.stop) is not None:
        name = page.word(stop.function or "The example")
        why = " is not written yet." if stop.not_written else " gave no usable result."
        yield from page.sentence(Text("The trace ends here: ").append(name, "bold").append(why))
        if not stop.not_written:
            yield from page.verbatim(stop.message, _BODY, limit=_STOP_LINES)[0]
        yield Text()
    if trace.to_fix and offers:
        yield from _offers(page, trace.to_fix)


def _offers(page: Page, slug: str) -> Iterator[Text]:
    yield from page.offer("To check it:", f"grade {slug}")
    yield from page.offer("For a hint: ", f"grade hint {slug}")
    yield Text()


def _in_short(page: Page, trace: Trace, compared: Comparison) -> Iterator[Text]:
    """Where the numbers first go wrong, and what the signs mean."""
    first = compared.first_wrong
    if first is not None:
        line = Text("The first wrong step: ", "bold red").append(page.word(first.name), "bold")
        yield from page.sentence(line.append("."))
        sign = "" if page.plain else f"{page.glyphs.failed} marks a wrong number. "
        yield from page.sentence(f"{sign}The right ones are the course's.", "dim")
    elif compared.is_compared and trace.stop is None:
        words = "Every number of this example is right. The checks try other inputs, too."
        yield from page.sentence(words, "green")
    if compared.any_changed and not page.plain:
        words = f"{_CHANGED} marks what your last save changed."
        yield from page.sentence(words, "dim")


def _sentences(step: TracedStep) -> Iterator[str]:
    """The sentences about a step besides its numbers, in simple markdown."""
    if step.misfit:
        yield step.misfit
    elif step.same_as:
        yield f"The numbers of {step.same_as}, rearranged."
    if step.says:
        yield step.says


def _left_out(step: TracedStep) -> str | None:
    """A sentence about numbers that are not shown; None if all are shown."""
    if not step.blocks:
        return "It has no numbers."
    whole = math.prod(axis.size for axis in step.axes)
    shown = len(every(block.rows for block in step.blocks))
    return f"Only {shown} of its {whole} numbers are shown." if shown < whole else None


def place_of(axes: Sequence[Axis], block: Block) -> str:
    """The place of this table in its step: "B=0 H=1"; axes of size 1 are left out."""
    return " ".join(
        f"{axis.name}={place}" if axis.name else f"[{place}]"
        for axis, place in zip(axes, block.index, strict=False)
        if axis.size > 1
    )


def _last_axes(axes: Sequence[Axis]) -> tuple[Axis | None, Axis | None]:
    """The axes of a table's rows and columns, None if there is no such axis."""
    return (axes[-2] if len(axes) > 1 else None, axes[-1] if axes else None)


def _step(page: Page, step: TracedStep, compared: Compared) -> Iterator[Text]:
    sizes = (", " if page.plain else "  ").join(_size(page, axis) for axis in step.axes)
    line = Text().append(page.word(step.name), "bold cyan")
    yield from page.sentence(line.append(f"   {sizes}" if sizes else ""))
    for sentence in _sentences(step):
        yield from page.wrap(page.inline(sentence), _BODY)
    if page.plain:
        for fact in _facts(step, compared):
            yield from page.wrap(page.clean(fact), _BODY)
    else:
        yield from _tables(page, step, compared)
    if (more := _left_out(step)) is not None:
        yield from page.wrap(more, _BODY)


def _size(page: Page, axis: Axis) -> str:
    name, size = page.word(axis.name), axis.size
    if name in ("", "1"):
        return f"size {size}" if page.plain else f"{size}"
    return f"{name} is {size}" if page.plain else f"{name}={size}"


def _facts(step: TracedStep, compared: Compared) -> Iterator[str]:
    """The numbers one by one, each with its place: `weights, H 0, the to cat: 0.25`."""
    right = compared.right
    show = _format(step, right)
    for place, where, number in _numbers(step):
        line = f"{where}: {show(number)}"
        if right is not None and place in compared.wrong:
            block, i, j = place
            line += f", wrong: {show(right.blocks[block].rows[i][j])} is right"
        yield line + (", changed" if place in compared.changed else "")
    if right is not None and not compared.wrong:
        yield from (f"right {where}: {show(number)}" for _, where, number in _numbers(right))


def _format(step: TracedStep, right: TracedStep | None) -> Callable[[Number], str]:
    """One format for a step's numbers and for the right ones."""
    blocks = (*step.blocks, *(right.blocks if right else ()))
    return number_format(every(block.rows for block in blocks))


def _numbers(step: TracedStep) -> Iterator[tuple[Place, str, Number]]:
    rows, columns = _last_axes(step.axes)
    for place, block in enumerate(step.blocks):
        leading = [
            _named(axis, index)
            for axis, index in zip(step.axes, block.index, strict=False)
            if axis.size > 1
        ]
        for i, row in enumerate(block.rows):
            for j, number in enumerate(row):
                words = [step.name, *leading, *_places(rows, i, columns, j)]
                yield (place, i, j), ", ".join(words), number


def _places(rows: Axis | None, i: int, columns: Axis | None, j: int) -> Iterator[str]:
    if rows is not None and columns is not None and rows.labels and columns.labels:
        yield f"{rows.labels[i]} to {columns.labels[j]}"
        return
    for axis, place in ((rows, i), (columns, j)):
        if axis is not None and axis.size > 1:
            yield _named(axis, place)


def _named(axis: Axis, place: int) -> str:
    return axis.labels[place] if axis.labels else f"{axis.name} {place}".strip()


# --- tables ------------------------------------------------------------------------------------


def _tables(page: Page, step: TracedStep, compared: Compared) -> Iterator[Text]:
    """A table for each block, and the right one beside each if any is wrong."""
    right = compared.right
    show = _drawn(page, _format(step, right))
    whose = "yours" if compared.wrong else ""
    tables = [
        _table(page, step.axes, block, show, _signs(page, number, compared), whose)
        for number, block in enumerate(step.blocks)
    ]
    if right is not None:
        others = [_table(page, right.axes, block, show, {}, "right") for block in right.blocks]
        pairs = zip(tables, others, strict=True) if compared.wrong else ()
        tables = [table for pair in pairs for table in pair] or tables + others
    for lines in side_by_side(page, tables, _BODY, in_pairs=right is not None):
        yield from lines


def _signs(page: Page, block: int, compared: Compared) -> dict[tuple[int, int], Text]:
    """The marks after the numbers of a block that are wrong or have changed."""
    places = {place[1:] for place in compared.wrong | compared.changed if place[0] == block}
    signs = {}
    for i, j in places:
        is_wrong = (block, i, j) in compared.wrong
        sign = Text(page.glyphs.failed, "bold red") if is_wrong else Text()
        if (block, i, j) in compared.changed:
            sign.append(_CHANGED, "yellow")
        signs[i, j] = sign
    return signs


def _drawn(page: Page, show: Callable[[Number], str]) -> Callable[[Number], str]:
    signs = {True: page.glyphs.passed, False: page.glyphs.not_started}
    return lambda number: signs[number] if isinstance(number, bool) else show(number)


def _table(
    page: Page,
    axes: Sequence[Axis],
    block: Block,
    show: Callable[[Number], str],
    signs: Mapping[tuple[int, int], Text],
    whose: str,
) -> list[Text]:
    """The lines of one table: its place, the columns' names if any, then the rows."""
    rows, columns = _last_axes(axes)
    row_labels = [page.word(word, _LONGEST_LABEL) for word in (rows.labels if rows else ())]
    label = max((cell_len(word) for word in row_labels), default=0)
    numbers = [[show(number) for number in row] for row in block.rows]
    cell = max(len(text) for row in numbers for text in row)
    names = columns.labels if columns is not None else ()
    if names:
        cell = max(cell, *(min(cell_len(page.word(name)), _LONGEST_LABEL // 2) for name in names))
    behind = max((sign.cell_len for sign in signs.values()), default=0)
    room = max(1, (page.width - _BODY - label) // (cell + behind + 2))
    lines = []
    place = page.word(place_of(axes, block))
    if heading := ", ".join(filter(None, (place, whose))):
        lines.append(Text(heading, "dim"))
    if names:
        words = [page.word(name, cell) for name in names[:room]]
        drawn = "".join(f"  {' ' * (cell - cell_len(word))}{word}{' ' * behind}" for word in words)
        lines.append(Text(" " * label + drawn if label else drawn[2:], "dim"))
    for i, row in enumerate(numbers):
        word = row_labels[i] if row_labels else ""
        line = Text().append(word + " " * (label - cell_len(word)), "dim")
        for j, text in enumerate(row[:room]):
            sign = signs.get((i, j), Text())
            line.append(f"{'  ' if label or j else ''}{text:>{cell}}").append_text(sign)
            line.append(" " * (behind - sign.cell_len))
        line.rstrip()
        lines.append(line)
    if any(len(row) > room for row in numbers):
        lines.append(
            Text(f"{page.glyphs.more} {count(len(numbers[0]) - room, 'more column')}", "dim")
        )
    return lines
