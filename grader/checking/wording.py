"""How a check tells what is wrong: the failure, and its values drawn with named axes.

The message is for the learner: a first line that stands alone, then `expected` and `got`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from grader.types.report import Way

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy
    from torch import Tensor

    Values: TypeAlias = numpy.ndarray[Any, Any]
    Array: TypeAlias = Tensor | Values

ROW_WIDTH = 8  # a last axis of at most this many values is shown whole
MATRIX_ROWS = 4  # and a matrix of at most this many such rows
LINE = 76  # the engine may indent a message by up to four columns
_DIGITS = (3, 6, 9, 17)  # digits of a number; more are shown if these show no difference


class CheckFailed(AssertionError):
    """The learner's answer is wrong; the message says how, and `way` in which way.

    If several checks fail in one way, a screen explains only one of them in full. `axes` are the
    names and sizes of the expected axes.
    """

    def __init__(
        self, message: str, way: Way | None = None, axes: Iterable[tuple[str, int]] = ()
    ) -> None:
        super().__init__(message)
        self.way = way
        self.axes = tuple(axes)


def contrast(
    summary: str,
    expected: str,
    got: str,
    way: Way | None = None,
    axes: Iterable[tuple[str, int]] = (),
) -> CheckFailed:
    """The failure with this first line, what was expected and what came."""
    return CheckFailed(f"{summary}\n  expected  {expected}\n  got       {got}", way, axes)


def sizes(shape: Any, names: Sequence[str] = ()) -> str:
    """A shape as [B=2, T=3], or [2, 3] if the axes have no names."""
    if not names:
        return str(list(shape))
    return "[" + ", ".join(f"{name}={size}" for name, size in zip(names, shape, strict=True)) + "]"


def expect_sizes(
    summary: str,
    expected: Sequence[int],
    got: Sequence[int],
    names: Sequence[str] = (),
    way: Way = Way.SHAPE,
) -> None:
    """Expect this shape, whose axes may have names; `summary` begins the message."""
    if tuple(got) != tuple(expected):
        axes = zip(names, expected, strict=False)
        raise contrast(summary, sizes(expected, names), sizes(got), way, axes)


def axis_names(array: Array, axes: str | None = None) -> list[str]:
    """The given names, or else those that `rand` has noted, or else none."""
    names = list(getattr(array, "axes", ())) if axes is None else axes.split()
    return names if len(names) == array.ndim else []


def position(where: Sequence[int], names: Sequence[str]) -> str:
    """A position as B=0, T=2, or [0, 2] if the axes have no names."""
    return sizes(where, names).strip("[]") if names else sizes(where)


def drawn(
    want: Values,
    got: Values,
    close: Values,
    where: tuple[int, ...],
    names: Sequence[str],
    as_bool: bool,
) -> str:
    """The expected and actual values at the first wrong position, and as much around as fits.

    That is the matrix of the last two axes if it is small, else the row, else only the value. A
    star marks each wrong actual value.
    """
    if want.ndim >= 2 and 1 < want.shape[-2] <= MATRIX_ROWS and want.shape[-1] <= ROW_WIDTH:
        left, right = _cells(want, got, close, where[:-2], as_bool)
        axes = f", {names[-2]} down, {names[-1]} across" if names else ""
        for head in (f"expected{axes}", "expected"):
            width = max(map(len, [head, *left]))
            pairs = zip([head, *left], ["got (* is wrong)", *right], strict=True)
            lines = [f"  {one:<{width}}  {other}" for one, other in pairs]
            if max(map(len, lines)) <= LINE:
                return "\n".join(lines)
    if where and 1 < want.shape[-1] <= ROW_WIDTH:
        (one,), (other,) = _cells(want, got, close, where[:-1], as_bool)
        if len(other) <= LINE - len("  expected  "):
            return f"  expected  {one}\n  got       {other}".rstrip()
    (one,), (other,) = _cells(want, got, close, where, as_bool)
    return f"  expected  {one.strip('[ ]')}\n  got       {other.strip('[* ]')}"


def _cells(
    want: Values, got: Values, close: Values, part: tuple[int, ...], as_bool: bool
) -> tuple[list[str], list[str]]:
    """A part of both arrays, row by row with aligned columns; a star marks wrong values.

    Each number has as many digits as the difference needs.
    """
    import numpy

    sides = [numpy.atleast_1d(array[part]) for array in (want, got)]
    across = sides[0].shape[-1]
    right = numpy.ravel(close[part]).tolist()
    for digits in _DIGITS:
        texts = [[number(value, as_bool, digits) for value in s.ravel().tolist()] for s in sides]
        if all(same or one != other for one, other, same in zip(*texts, right, strict=True)):
            break
    width = max(len(text) for side in texts for text in side)
    marks = [" "] * len(right), [" " if same else "*" for same in right]
    both = []
    for side, signs in zip(texts, marks, strict=True):
        cells = [f"{text:>{width}}{sign}" for text, sign in zip(side, signs, strict=True)]
        rows = [cells[at : at + across] for at in range(0, len(cells), across)]
        both.append([f"[{' '.join(row)}]" for row in rows])
    return both[0], both[1]


def apart(one: complex, other: complex, as_bool: bool = False) -> tuple[str, str]:
    """Two numbers, with six digits or as many as their difference needs."""
    for digits in _DIGITS[1:]:
        texts = number(one, as_bool, digits), number(other, as_bool, digits)
        if texts[0] != texts[1]:
            break
    return texts


def number(value: complex, as_bool: bool = False, digits: int = 6) -> str:
    """A number with so many digits, or a truth value as one."""
    if as_bool or isinstance(value, bool):
        return str(bool(value))
    return f"{value + 0:.{digits}g}"  # no -0


def capital(text: str) -> str:
    """`the result` with a capital; a name such as `d_k` stays."""
    return "T" + text[1:] if text.startswith("the ") else text


def shorten(text: str) -> str:
    """The text without an end that would be too long for a screen."""
    room = 3 * (LINE - len("  expected  "))  # the screen breaks it into lines
    return text if len(text) <= room else text[: room - 1] + "…"


def first_place(wrong: Values) -> tuple[int, ...]:
    """The first position that is True, in row-major order."""
    import numpy

    return tuple(int(index) for index in numpy.argwhere(wrong)[0])


def extent(got: Values, want: Values, close: Values, as_bool: bool) -> str:
    """How much of the array is wrong, in brackets after the place of the first wrong value."""
    import numpy

    if close.size == 1:
        return ""
    wrong = ~close
    share = f"{wrong.sum()} of {close.size} values"
    with numpy.errstate(invalid="ignore"):
        gap = abs(got[wrong] - want[wrong])
    gap = gap[numpy.isfinite(gap)]
    if as_bool or gap.size == 0:
        return f" ({share})"
    return f" ({share}, by up to {gap.max().item():.3g})"
