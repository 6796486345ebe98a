"""Which intermediate value of an answer is the first that the learner's code does not make. Pure.

It states facts about numbers. A learner may take another path: a missing value says nothing if a
later one is right.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from grader.diagnosis.comparison.relations.finding import relation_of
from grader.diagnosis.comparison.relations.pair import Pair, Relation
from grader.diagnosis.comparison.values.matching import (
    Match,
    Tolerance,
    has_rows_of,
    is_telling,
    match,
    with_hidden,
)
from grader.types.report import Diagnosis
from grader.types.text import listed

_LOOSE = 30  # times the room between equal numbers
_COARSE = 0.03  # relative, and at least: what is computed in a coarser dtype is near
_NEAR = 0.01  # a factor so close to 1 is an error of another kind
_NONE = "None of its tensors equals what comes next"
# Relations that also tensors have which are not meant to be the value, such as zeros.
_WEAK = ("constant", "same-along", "rounded")
# A relation of numbers that a right way divides by their sum later.
_UNDIVIDED = "factor-of-row"


@dataclass(frozen=True)
class Right:
    """A value of the right answer: its name, its numbers and the names of its axes."""

    name: str
    array: Any
    axes: tuple[str, ...]
    tolerance: Tolerance

    @property
    def shown(self) -> str:
        """The name with the axes."""
        return self.name + (f" ({', '.join(self.axes)})" if self.axes else "")


@dataclass(frozen=True)
class Made:
    """A tensor that the learner's code made, and where: "file.py, line 3", "" if not known."""

    array: Any
    where: str
    dtype: str = ""


def first_wrong(
    way: Sequence[Sequence[Right]],
    made: Sequence[Made],
    code: str,
    go_on: Callable[[], None] = lambda: None,
) -> Diagnosis | None:
    """The first value of the `way` that is not there while those before it are.

    Values that do not depend on each other are one step of the way. `code` is the name of what
    was called. None if nothing can be said. `go_on` is called before each search for a value among
    the tensors, which takes long if the learner makes many that nearly match. Raises what it does.
    """
    steps = list(_without_repeats(way))
    if not made or not steps:
        return None
    there = _There(steps, made, go_on)
    following = there.following
    if any(value.name not in there.found for value in following):
        return None
    absent = [value for value in following if there.found[value.name] is None]
    missing = [value for value in absent if not there.is_nearly(value)]
    if absent and not missing:
        return there.nearly(absent[0], code)
    if not there.reached and missing:
        return there.alike(missing, "") or _not_begun(code, missing)
    if not there.reached:
        return there.scaled("", code) if len(following) == 1 else None
    right, order = there.right(code)
    if not following:
        if not order and there.is_of_other_shape(there.reached[-1]):
            return None
        end = f"{order}." if order else ": what is wrong comes after that, or beside it."
        return _told("the end", right + end)
    if missing:
        passed = there.passed
        alike = there.alike(passed, right) or there.alike(missing, right)
        if alike is not None:
            return alike
        shown = listed([value.shown for value in missing])
        too = f" None equals {passed[0].shown} either." if passed else ""
        return _told(missing[0].name, f"{right}. {_NONE}: {shown}.{too}")
    return there.scaled(right, code) if len(following) == 1 else None


def _not_begun(code: str, first: Sequence[Right]) -> Diagnosis:
    """That none of the first values is there."""
    what = f"equals {listed([value.shown for value in first], 'or')}"
    said = f"None of the tensors that your {code} makes {what}: the answer begins with"
    return _told(first[0].name, said + (" these." if len(first) > 1 else " that."))


class _There:
    """Which values of the `way` are among the tensors that the learner's code made.

    `found` has the values that tell something, None for those that are not there. `reached` are
    those of the last step of which one is there, and `following` what should come next.
    """

    def __init__(
        self, way: Sequence[list[Right]], made: Sequence[Made], go_on: Callable[[], None]
    ) -> None:
        self._way, self._made, self._go_on = way, made, go_on
        self._arrays = [each.array for each in made]
        self.found = {
            value.name: self._sought(value, value.tolerance)
            for step in way
            for value in step
            if is_telling(value.array)
        }
        steps = [n for n, step in enumerate(way) if any(map(self._is_there, step))]
        self._last = steps[-1] if steps else -1
        step = way[self._last] if steps else []
        self.reached = [value for value in step if self._is_there(value)]
        absent = object()
        self.following = [v for v in step if self.found.get(v.name, absent) is None]
        if not self.following and self._last + 1 < len(way):
            self.following = way[self._last + 1]

    def _sought(self, value: Right, tolerance: Tolerance) -> Match | None:
        self._go_on()
        return match(value.array, self._arrays, tolerance)

    def _is_there(self, value: Right) -> bool:
        return _is_there(self.found.get(value.name))

    def is_of_other_shape(self, value: Right) -> bool:
        """Whether all numbers of a value are in one tensor, with other axes than the value has."""
        known = self.found[value.name]
        array = self._made[known.place].array if known is not None else value.array
        return bool(array.size == value.array.size and array.shape != value.array.shape)

    def is_nearly(self, value: Right) -> bool:
        """Whether a tensor is too near to the value to be called another."""
        return _is_there(self._sought(value, _loose(value)))

    def nearly(self, value: Right, code: str) -> Diagnosis | None:
        """By how much a tensor differs that is near to the value which should come next."""
        made = self._first_of(value.array, _loose(value))
        if made is None:
            return None
        got = made.array.reshape(value.array.shape)
        seen = numpy.isfinite(value.array) & numpy.isfinite(got)
        most = numpy.abs(got - value.array)[seen].max()
        where = f"In {made.where}, your" if made.where else "Your"
        first = "The answer begins with"
        so_far = f"{self.right(code)[0]}. What comes next:" if self.reached else first
        return _told(
            value.name,
            f"{so_far} {value.shown}. {where} numbers are nearly these, but differ by up to "
            f"{most:.2g}: look for a small number that does not belong there, or a coarser dtype.",
        )

    @property
    def passed(self) -> list[Right]:
        """The missing values of each step that has another one: right keys, say, but wrong values.

        A value that is there except for a factor may belong to another right way, such as queries
        that are scaled first.
        """
        return [
            value
            for step in self._way[: max(self._last, 0)]
            if any(map(self._is_there, step))
            for value in step
            if value.name in self.found and self.found[value.name] is None
            if not self.is_nearly(value)
        ]

    def right(self, code: str) -> tuple[str, str]:
        """What is right so far, and the order that its axes should have, if they have another."""
        turned = self._turned()
        if turned is None:
            line = self._line(self.reached[-1])
            names = listed([value.name for value in self.reached])
            if len(self.reached) > 1:  # of one size they may be exchanged: that shows only later
                return f"Your {code} makes {names}{line}", ""
            return f"Your {code} gets {names} right{self._filled(self.reached[0])}{line}", ""
        value, order = turned
        right = f"Your {code} gets {value.name} right{self._line(value)}, with the axes in "
        return f"{right}the order ({', '.join(order)})", f", not ({', '.join(value.axes)})"

    def alike(self, missing: Sequence[Right], right: str, begin: int = -1) -> Diagnosis | None:
        """How a tensor relates to the first missing value to which one relates at all.

        What should come next is made after what is right, and after the tensor at `begin`, what
        stands beside that at any time, and all else before it.
        """
        known = {found.place for found in self.found.values() if found and _is_there(found)}
        reached = [self.found[value.name] for value in self.reached]
        newest = max((found.place for found in reached if found), default=-1)
        newest = max(newest, begin)
        due = {value.name for value in self.following}
        beside = {value.name for value in self._way[self._last]} if reached else set()
        if not reached and begin < 0:
            beside = due
        for value, (place, made) in itertools.product(missing, enumerate(self._made)):
            self._go_on()
            is_due = value.name in beside or (place > newest) is (value.name in due)
            if place in known or not is_due or not has_rows_of(value.array, made.array):
                continue
            got = with_hidden(value.array, made.array.reshape(value.array.shape))
            relation = self._relation(value, got)
            if relation is None or relation.id.partition(":")[0] in _WEAK:
                continue
            if relation.id.startswith(_UNDIVIDED) and self._goes_on(place):
                continue
            so_far = f"{right}, but not" if right else "The answer begins with"
            text = relation.text[0].lower() + relation.text[1:]
            text = f"In {made.where}, {text}" if made.where else text[0].upper() + text[1:]
            return _told(value.name, f"{so_far} {value.shown}. {text}")
        return None

    def _vanishes(self, value: Right, place: int) -> bool:
        """Whether a later tensor of that shape has no number but 0: its factor is not the last."""
        later = (each.array for each in self._made[place + 1 :])
        return any(
            has_rows_of(value.array, array) and not array[numpy.isfinite(array)].any()
            for array in later
        )

    def _goes_on(self, place: int) -> bool:
        """Whether another tensor of that shape is made after one."""
        array, *later = (made.array for made in self._made[place:])
        return any(
            other.shape == array.shape and not numpy.allclose(other, array, equal_nan=True)
            for other in later
        )

    def _relation(self, value: Right, array: Any) -> Relation | None:
        room = value.tolerance.relative, value.tolerance.absolute
        axes = value.axes if len(value.axes) == value.array.ndim else ()
        return relation_of([Pair(array, value.array, room, "your tensor", axes)])

    def scaled(self, right: str, code: str) -> Diagnosis | None:
        """Says that the next value is there except for a factor, and no later tensor relates to it.

        `right` names what is right, "" if nothing is.
        """
        first = value = self.following[0]
        for step in self._way[self._last + 2 :]:
            # Who scales later than the author makes the error later, too.
            if len(step) > 1 or self.found.get(step[0].name) is None:
                break
            value = step[0]
        known = self.found[value.name]
        if known is None or known.factor == 1.0:
            return None
        if abs(known.factor - 1) < _NEAR or self.is_nearly(first):
            return self.nearly(first, code)
        later = self.alike([first], right, known.place) if value is first else None
        if later is not None:
            return later
        if self._vanishes(value, known.place):
            return _told(value.name, f"{right}. {_NONE}: {value.shown}.") if right else None
        after = "What comes next" if value is first else "After that"
        so_far = f"{right}. {after}:" if right else "The answer needs"
        made = self._first_of(value.array * known.factor, value.tolerance)
        line = _in_brackets(made.where) if made is not None else ""
        times = f"Your numbers are {known.factor:.3g} times these{line}."
        return _told(value.name, f"{so_far} {value.shown}. {times}")

    def _filled(self, value: Right) -> str:
        """Which number stands where a value has -inf, if it is another one."""
        known, hidden = self.found[value.name], numpy.isneginf(value.array)
        made = self._made[known.place].array if known is not None else value.array
        if (
            not hidden.any()
            or made.shape != value.array.shape
            or numpy.isneginf(made[hidden]).all()
        ):
            return ""
        return f", with {made[hidden].max():.3g} in place of -inf"

    def _turned(self) -> tuple[Right, tuple[str, ...]] | None:
        """The first value whose axes are in another order, with the names in that order.

        A tensor with more or fewer axes has no such order: it cuts one of them, or joins some.
        """
        for value in self.reached:
            known, axes = self.found[value.name], len(value.axes)
            if known is None or not known.order or axes != value.array.ndim:
                continue
            if self._made[known.place].array.ndim == axes:
                return value, tuple(value.axes[axis] for axis in known.order)
        return None

    def _line(self, value: Right) -> str:
        """Where a value is made."""
        known = self.found[value.name]
        return _in_brackets(self._made[known.place].where if known is not None else "")

    def _first_of(self, array: Any, tolerance: Tolerance) -> Made | None:
        """The first tensor that equals an array: later ones may be copies."""
        return next(
            (
                made
                for made in self._made
                if has_rows_of(array, made.array)
                if tolerance.holds(made.array.reshape(array.shape), array)
            ),
            None,
        )


def _in_brackets(where: str) -> str:
    return f" ({where})" if where else ""


def _without_repeats(way: Sequence[Sequence[Right]]) -> Iterator[list[Right]]:
    """The way without values that are an earlier one again, as with a mask that blocks nothing."""
    before: list[Any] = []
    for step in way:
        new = [
            value
            for value in step
            if not is_telling(value.array)
            or not _is_there(match(value.array, before, value.tolerance))
        ]
        before += [value.array for value in step]
        if new:
            yield new


def _loose(value: Right) -> Tolerance:
    """The room in which a value is too near to the right one to be called another."""
    relative, absolute = value.tolerance.relative, value.tolerance.absolute
    return Tolerance(max(_LOOSE * relative, _COARSE * bool(relative)), _LOOSE * absolute)


def _is_there(found: Match | None) -> bool:
    return found is not None and found.factor == 1.0


def _told(name: str, text: str) -> Diagnosis:
    return Diagnosis(f"value:{re.sub(r'[^a-z0-9]+', '-', name.lower())}", text)
