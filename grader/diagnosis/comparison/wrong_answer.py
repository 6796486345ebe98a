"""The wrong answer of a failing case, beside the right one, as far as a symptom needs them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from grader.checking.comparing import wide
from grader.diagnosis.comparison.relations.pair import Pair, is_telling
from grader.diagnosis.comparison.replay import PARAMETERS, Step
from grader.diagnosis.comparison.replies import arrays, equal, read, room
from grader.diagnosis.comparison.starts import other_names
from grader.misconceptions import Symptom
from grader.run.facts import CaseFact
from grader.run.failures import strings
from grader.run.worker.packing import Iterated, Unpacker
from grader.types.report import Way
from grader.types.text import listed

_MOST_TESTED = 1 << 20  # numbers of an answer in which a relation is tested
_ORDINALS = ("first", "second", "third", "fourth")


def wrong_answer(
    fact: CaseFact, steps: Sequence[Step], solution: Callable[[str], Any]
) -> WrongAnswer | None:
    """The wrong answer of a failing case: that of its last call, else the first; None without one.

    A check may accept another answer than the solution's, such as weights from before dropout, and
    go on.
    """
    wrong = [step for step in steps if step.deviates]
    if wrong:
        last = steps[-1]
        is_last = last.deviates and last.learner.error is None and _is_call(last)
        return WrongAnswer(fact, steps, solution, last if is_last else wrong[0])
    # Answers that are equal for a replay may still differ too much for the check.
    is_strict = fact.way == Way.VALUES.value and bool(steps)
    return WrongAnswer(fact, steps, solution, steps[-1], True) if is_strict else None


@dataclass(frozen=True)
class WrongAnswer:
    """A `step` of a failing case whose answer is wrong; of a check that `_is_strict`, equal."""

    _fact: CaseFact
    _steps: Sequence[Step]
    _solution: Callable[[str], Any]
    step: Step
    _is_strict: bool = False

    @property
    def start(self) -> tuple[Any, Any] | None:
        """The parameters of both sides, if they are freshly drawn or of other names."""
        step = self.step
        if step.learner.error is not None or step.solution.error is not None:
            return None
        both = step.learner.value, step.solution.value
        method = step.exchange.request.target.get("method")
        return both if step.fresh or (method in PARAMETERS and other_names(*both)) else None

    @property
    def lacking(self) -> list[str]:
        """The parameters that the check has set, and that the module does not have."""
        names: list[str] = []
        for step in takewhile(lambda step: step is not self.step, self._steps):
            if step.exchange.request.target.get("method") == "load_state_dict":
                keys = read(step.exchange.reply).value
                names = strings(keys[1]) if isinstance(keys, tuple) and len(keys) == 2 else []
        return names

    @property
    def is_comparable(self) -> bool:
        """Whether both sides returned an answer of an entry point that is not freshly drawn.

        If a call stopped, what a module holds did not fail the check: other buffers may be allowed.
        """
        step = self.step
        if step.fresh or step.entry is None:
            return False
        is_held = bool(step.exchange.request.target.get("method"))
        if is_held and self._steps[-1].learner.error is not None:
            return False
        return step.learner.error is None and step.solution.error is None

    @property
    def is_telling(self) -> bool:
        """Whether a symptom of the author's proves something here."""
        want = arrays(self.step.solution.value)  # none if it is a single number
        return not want or any(is_telling(wide(array), _is_bool(array)) for array in want)

    def has(self, symptom: Symptom) -> bool:
        """Whether one of the author's symptoms holds."""
        step = self.step
        if step.entry != symptom.of or not _is_call(step):
            return False
        got, want = arrays(step.learner.value), arrays(step.solution.value)
        args = self._arguments(step)
        takes = inspect.signature(symptom.holds).parameters
        if all(each.kind is not each.VAR_KEYWORD for each in takes.values()):
            args = {name: value for name, value in args.items() if name in takes}
        try:
            held = symptom.holds(step.learner.value, step.solution.value, **args)
        except Exception:  # noqa: BLE001 - a wrong answer may have any shape
            return False
        return len(got) == len(want) and bool(held)

    @property
    def changes_arguments(self) -> bool:
        """Whether the learner's call is wrong and changes an argument, as no right call does."""
        learner, right = self.step.learner, self.step.solution
        is_wrong = not equal(learner.value, right.value)
        return is_wrong and bool(learner.changed) and not right.changed

    def beside_the_numbers(self) -> tuple[str, str] | None:
        """What is wrong although all numbers are right: the gradient, the dtype, an argument."""
        step = self.step
        learner, right = step.learner, step.solution
        if self._is_strict:
            return None
        if equal(learner.value, right.value):
            if not equal(learner.changed, right.changed):
                last = self._steps[-1]
                if last is not step and last.learner.error and _is_call(last):
                    return None  # another call ended the check
                return "changes-argument", "Your result is right, but the call changes an argument."
            if any(right.grads) and not any(learner.grads):
                text = "Your result has the right numbers, but no gradient can flow through it."
                return "no-gradient", text
            return None
        pieces = self._pieces(learner.value, right.value)
        if pieces:
            return "pieces", pieces
        contained = self._contained(learner.value, right.value)
        if contained:
            kind = contained.partition(" ")[2].replace(" ", "-")
            return f"inside:{kind}", f"Your result is the right one, but inside {contained}."
        got, want = arrays(learner.value), arrays(right.value)
        if len(got) != len(want) or not want:
            return None
        for one, other in zip(got, want, strict=True):
            if tuple(one.shape) != tuple(other.shape) or not _is_near(one, other):
                return None
        given, due = ({_name(array) for array in side} for side in (got, want))
        if given == due:
            return None
        names = f"as {listed(sorted(given))}, not as {listed(sorted(due))}"
        return "dtype", f"Your result has the right numbers, but {names}."

    def _pieces(self, value: Any, right: Any, what: str = "Your result") -> str:
        """That the right array is there in pieces along an axis, "" if it is not.

        One of several results may be, if the others are right.
        """
        if isinstance(value, tuple) and isinstance(right, tuple) and len(value) == len(right):
            both = enumerate(zip(value, right, strict=True))
            wrong = [(place, *each) for place, each in both if not equal(*each)]
            if len(wrong) != 1:
                return ""
            [(place, value, right)] = wrong
            what = f"The {_ordinal(place)} of your results"
        if not isinstance(value, (list, tuple)) or len(value) < 2 or not hasattr(right, "shape"):
            return ""
        names = self._axes(right)
        for axis, size in enumerate(right.shape):
            before = (slice(None),) * axis
            if len(value) == size and all(
                equal(piece, right[(*before, place)]) for place, piece in enumerate(value)
            ):
                kind, name = type(value).__name__, names[axis] if names else f"axis {axis}"
                return f"{what} is a {kind} of the right pieces along {name}: stack them."
        return ""

    def _axes(self, right: Any) -> tuple[str, ...]:
        """The names of the right array's axes, () if unknown."""
        sizes = tuple(size for _, size in self._fact.axes)
        return tuple(name for name, _ in self._fact.axes if sizes == tuple(right.shape))

    def _contained(self, value: Any, right: Any) -> str:
        """What holds the right array, such as "a list"; "" if nothing does."""
        if not isinstance(value, (list, tuple)) or not hasattr(right, "dtype"):
            return ""
        name = "an iterator" if isinstance(value, Iterated) else f"a {type(value).__name__}"
        if len(value) == 1 and equal(value[0], right):
            return name
        import numpy

        try:
            nested = numpy.array(value, dtype=numpy.float64)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            return ""
        tolerance = room(right)
        if nested.shape != tuple(right.shape):
            return ""
        is_right = numpy.allclose(nested, wide(right), *tolerance)
        return name.replace(" ", " nested ") if is_right else ""

    @property
    def numbers(self) -> tuple[float, float] | None:
        """What came and what was expected, if both are plain numbers of an ordinary size."""
        both = self.step.learner.value, self.step.solution.value
        kinds = {type(each) for each in both}
        return both if kinds <= {int, float} and all(abs(each) < 1e300 for each in both) else None

    def pair(self) -> Pair | None:
        """The first wrong array of the answer, and the right one."""
        step = self.step
        got, want = arrays(step.learner.value), arrays(step.solution.value)
        if len(got) != len(want) or not want:
            return None
        for place, (one, other) in enumerate(zip(got, want, strict=True)):
            if equal(one, other) and not self._is_strict:
                continue
            size = max(math.prod(one.shape), math.prod(other.shape))
            if size > _MOST_TESTED or "complex" in _name(one) + _name(other):
                return None
            what = self._what(place, len(want), step)
            is_bool = _is_bool(one) and _is_bool(other)
            # How near is near enough for a strict check is not known: only equal is called right.
            tolerance = (0.0, 0.0) if self._is_strict else room(other)
            arguments = self._arguments(step)
            given = {
                name: wide(value) for name, value in arguments.items() if hasattr(value, "dtype")
            }
            return Pair(
                *(wide(one), wide(other), tolerance, what, self._axes(other)),
                *(self._sizes(arguments, step), given, is_bool),
            )
        return None

    def only_wrong(self) -> tuple[int, list[str]] | None:
        """Of several arrays the one that is wrong, in words, if all others are right; its place.

        Of parameters, up to half may be wrong: some layers were forgotten.
        """
        step = self.step
        got, want = arrays(step.learner.value), arrays(step.solution.value)
        if self._is_strict or len(got) != len(want) or len(want) < 2:
            return None
        is_right = [equal(one, other) for one, other in zip(got, want, strict=True)]
        others = [array for array, right in zip(want, is_right, strict=True) if right]
        most = len(want) // 2 if _asks_for_parameters(step) else 1
        if not 1 <= len(want) - len(others) <= most:
            return None
        if not all(is_telling(wide(array), _is_bool(array)) for array in others):
            return None
        wrong = [place for place, right in enumerate(is_right) if not right]
        if _asks_for_parameters(step):
            return wrong[0], [_parameter(step.solution.value, place) for place in wrong]
        kind = "gradients"
        if _is_call(step):
            kind = "tensors that you return" if _is_nested(step.solution.value) else "results"
        return wrong[0], [f"the {_ordinal(wrong[0])} of the {len(want)} {kind}"]

    def _what(self, place: int, count: int, step: Step) -> str:
        if _asks_for_parameters(step):
            return _parameter(step.solution.value, place)
        if not _is_call(step):
            return "The gradient" if count == 1 else f"The {_ordinal(place)} gradient"
        if _is_nested(step.solution.value):
            return f"The {_ordinal(place)} of the {count} tensors that you return"
        held, right = step.learner.value, step.solution.value
        if isinstance(held, (list, tuple, dict)) and not isinstance(right, (list, tuple, dict)):
            return f"The tensor in the {type(held).__name__} that you return"
        return "Your result" if count == 1 else f"The {_ordinal(place)} of your results"

    def _arguments(self, step: Step) -> dict[str, Any]:
        """The arguments of a request by their names in the solution."""
        header = step.exchange.request.header
        if "args" not in header or step.entry is None:
            return {}
        unpacker = Unpacker(step.exchange.request)
        args, kwargs = unpacker.unpack(header["args"]), unpacker.unpack(header["kwargs"])
        target = step.exchange.request.target
        called = self._solution(step.entry)
        if "object" in target:
            own = "forward" if hasattr(called, "forward") else "__call__"
            called = getattr(called, target.get("method") or own, None)
            args = [None, *args]
        try:
            bound = inspect.signature(called).bind(*args, **kwargs)
        except (TypeError, ValueError):
            return {}
        return {name: value for name, value in bound.arguments.items() if name != "self"}

    def _sizes(self, arguments: Mapping[str, Any], step: Step) -> dict[str, int]:
        """The known integers and sizes, including those with which the object was made."""
        found = dict(self._numbers(arguments))
        target = step.exchange.request.target
        if "object" in target:
            for made in self._steps:
                if made.exchange.reply.handle == target["object"]:
                    found.update(self._numbers(self._arguments(made)))
                    break
        wholes = [(name, size) for name, size in found.items() if "." not in name]
        for name, size in list(found.items()):
            for other, divisor in wholes:
                if name != other and divisor > 1 and size % divisor == 0 and size > divisor:
                    found[f"({name} / {other})"] = size // divisor
        return found

    def _numbers(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
        for name, value in arguments.items():
            if isinstance(value, int) and not isinstance(value, bool):
                yield name, value
            elif hasattr(value, "dtype") and hasattr(value, "shape"):
                for axis, size in enumerate(value.shape):
                    yield f"{name}.shape[{axis - len(value.shape)}]", int(size)


def _is_near(one: Any, other: Any) -> bool:
    """Whether two arrays have the same numbers, with the tolerance of the coarser dtype."""
    import numpy

    (relative, absolute), (other_relative, other_absolute) = room(one), room(other)
    tolerance = max(relative, other_relative), max(absolute, other_absolute)
    return bool(numpy.allclose(wide(one), wide(other), *tolerance, equal_nan=True))


def _is_bool(array: Any) -> bool:
    return _name(array) == "bool"


def _name(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def _is_nested(value: Any) -> bool:
    """Whether some of the results are in a tuple of their own, so counting them is no help."""
    return isinstance(value, (list, tuple)) and any(
        isinstance(each, (list, tuple)) for each in value
    )


def _asks_for_parameters(step: Step) -> bool:
    """Whether a request asks for the parameters of a module."""
    return step.exchange.request.target.get("method") in PARAMETERS


def _is_call(step: Step) -> bool:
    """Whether a request calls the learner's code, and is no backward pass."""
    return "args" in step.exchange.request.header


def _parameter(named: Any, place: int) -> str:
    """The name of a parameter among those that a module returned, in pairs or in a dictionary."""
    pairs = list(named.items()) if isinstance(named, dict) else list(named)
    return str([pair for pair in pairs if arrays(pair[1])][place][0])


def _ordinal(place: int) -> str:
    return _ORDINALS[place] if place < len(_ORDINALS) else f"{place + 1}th"
