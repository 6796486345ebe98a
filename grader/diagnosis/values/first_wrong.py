"""Which intermediate value of an answer is the first that the learner's code does not make. Pure.

It states facts about numbers. A learner may take another path: a missing value says nothing if a
later one is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from grader.diagnosis.values.matching import Match, Tolerance, is_telling, match
from grader.types.report import Diagnosis

_LOOSE = 30  # times the room between equal numbers
_NEAR = 0.01  # a factor so close to 1 is an error of another kind


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

    def sought(value: Right, tolerance: Tolerance) -> Match | None:
        go_on()
        return match(value.array, arrays, tolerance)

    arrays = [each.array for each in made]
    way = list(_without_repeats(way))
    if not arrays or not way:
        return None
    found = {
        value.name: sought(value, value.tolerance)
        for step in way
        for value in step
        if is_telling(value.array)
    }
    last = max(
        (n for n, step in enumerate(way) if any(_is_there(found.get(v.name)) for v in step)),
        default=-1,
    )
    reached = [v for v in way[last] if _is_there(found.get(v.name))] if last >= 0 else []
    following = (
        [v for v in way[last] if v.name in found and found[v.name] is None] if reached else []
    )
    if not following and last + 1 < len(way):
        following = list(way[last + 1])
    if any(value.name not in found for value in following):
        return None
    missing = [value for value in following if found[value.name] is None]
    if any(_is_there(sought(value, _loose(value))) for value in missing):
        return None
    if not reached:
        what = f"equals {_joined([value.shown for value in following], 'or')}"
        said = f"None of the tensors that your {code} makes {what}: the answer begins with"
        said += " these." if len(following) > 1 else " that."
        return _told(following[0].name, said) if missing else None
    # A value that is missing beside one that is there: the keys are right, say, the values not.
    passed = [
        value
        for step in way[: max(last, 0)]
        if any(_is_there(found.get(v.name)) for v in step)
        for value in step
        if value.name in found and not _is_there(sought(value, _loose(value)))
    ]
    turned = _turned(reached, found)
    if turned is None:
        said = f"Your {code} gets {_listed(reached)} right{_line(reached, found, made)}"
    else:
        value, order = turned
        said = (
            f"Your {code} gets {value.name} right{_line([value], found, made)}, with the axes in "
            f"the order ({', '.join(order)})"
        )
        if not following:
            said += f", not ({', '.join(value.axes)})"
    if not following:
        said += "." if turned else ": what is wrong comes after that, or beside it."
        return _told("the end", said)
    if missing:
        none = "None of its tensors equals what comes next"
        too = f" None equals {passed[0].shown} either." if passed else ""
        return _told(missing[0].name, f"{said}. {none}: {_shown(missing)}.{too}")
    if len(following) > 1:
        return None
    value = following[0]
    for step in way[last + 2 :]:  # who scales later than the author makes the error later, too
        if len(step) > 1 or found.get(step[0].name) is None:
            break
        value = step[0]
    known = found[value.name]
    if known is None or abs(known.factor - 1) < _NEAR:
        return None
    after = "What comes next" if value is following[0] else "After that"
    times = f"Your numbers are {known.factor:.3g} times these{_at(made[known.place].where)}."
    return _told(value.name, f"{said}. {after}: {value.shown}. {times}")


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
    return Tolerance(_LOOSE * value.tolerance.relative, _LOOSE * value.tolerance.absolute)


def _is_there(found: Match | None) -> bool:
    return found is not None and found.factor == 1.0


def _turned(
    reached: Sequence[Right], found: dict[str, Match | None]
) -> tuple[Right, tuple[str, ...]] | None:
    """The first value whose axes are in another order, with the names in that order."""
    for value in reached:
        known = found[value.name]
        if known is not None and known.order and len(value.axes) == value.array.ndim:
            return value, tuple(value.axes[axis] for axis in known.order)
    return None


def _told(name: str, text: str) -> Diagnosis:
    return Diagnosis(f"value:{re.sub(r'[^a-z0-9]+', '-', name.lower())}", text)


def _line(reached: Sequence[Right], found: dict[str, Match | None], made: Sequence[Made]) -> str:
    """Where the last of the values is made."""
    known = found[reached[-1].name]
    return _at(made[known.place].where) if known is not None else ""


def _at(where: str) -> str:
    return f" ({where})" if where else ""


def _shown(values: Sequence[Right]) -> str:
    return _joined([value.shown for value in values])


def _listed(values: Sequence[Right]) -> str:
    return _joined([value.name for value in values])


def _joined(names: Sequence[str], word: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
