"""Constant answers: no check may pay for one unless its author says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from itertools import islice
from types import ModuleType
from typing import Any

from grader.run.facts import CaseFact, Ending, StageFacts
from grader.types.course import Stage

Find = Callable[[str], Any]
# The constant for a right result and the arguments of the call that gave it.
Change = Callable[[Any, tuple[Any, ...]], Any]

ODD = "odd"  # sevens in another shape
ANY_ANSWER = {"zeros", "ones", ODD}  # a check that pays for all of these may ask nothing
_MOST = 10_000  # what an iterator may give: more cannot pass to a check
_NUMBERS = {"zeros": 0, "ones": 1}
_ERRORS = (ValueError, TypeError, RuntimeError, IndexError, KeyError, AssertionError)


@dataclass(frozen=True)
class Constant:
    """A constant answer: its name, and the functions in place of the entry points.

    If it `is_built`, the constructors are right, and only calls of their objects are constant.
    """

    name: str
    find: Find
    is_built: bool = True


def constants(stage: Stage, solution: Find) -> Iterator[Constant]:
    """The constant answers for the entry points that `solution` finds.

    For a class, each error comes twice: from calls of its objects, and from the constructor.
    """
    if stage.fixture:
        yield Constant("passing", _tests(stage, "pass"))
        yield Constant("failing", _tests(stage, "assert False"))
        return
    classes = {entry.name for entry in stage.entry_points if entry.is_class}

    def answering(change: Change) -> Find:
        return lambda name: (_class if name in classes else _function)(solution(name), change)

    for name, number in _NUMBERS.items():
        yield Constant(name, answering(partial(_filled, number)))
    yield Constant(ODD, answering(partial(_filled, 7, more=(2,))))
    yield Constant("input", answering(_input))
    yield Constant("None", answering(lambda right, given: None))
    for kind in _ERRORS:
        raising = partial(_raising, kind)
        yield Constant(kind.__name__, answering(raising))
        if classes:
            yield Constant(kind.__name__, lambda _, raising=raising: raising, is_built=False)  # type: ignore[misc]


def earned(stage: Stage, constant: Constant, facts: StageFacts) -> Iterator[str]:
    """The ids of the checks that a constant answer passes, if they called it at all."""
    classes = {entry.name for entry in stage.entry_points if entry.is_class and constant.is_built}
    has_methods = any(entry.is_object for entry in stage.entry_points)
    for planned in facts.planned:
        own = [fact for fact in facts.cases if fact.case.check == planned.id]
        passed = all(fact.ending is Ending.PASSED for fact in own)
        if passed and any(_is_met(fact, classes, has_methods) for fact in own):
            yield planned.id


def _is_met(fact: CaseFact, classes: set[str], has_methods: bool) -> bool:
    """Whether a case called anything other than the constructors of these classes.

    If the stage `has_methods`, calls of them count; those of a module only ask what it holds.
    """
    targets = [exchange.request.target for exchange in fact.exchanges]
    return any(
        target["function"] not in classes
        if "function" in target
        else "object" in target and (has_methods or len(target) == 1)
        for target in targets
    )


def _function(right: Callable[..., Any], change: Change) -> Callable[..., Any]:
    """A function that returns the constant, even where the right one raises."""

    def constant(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        try:
            result = right(*args, **kwargs)
            if isinstance(result, Iterator):  # it arrives as a list, and may raise only now
                result = [*islice(result, _MOST)]
        except Exception:  # noqa: BLE001 - a constant answer refuses nothing
            result = _input(None, given)
        return change(result, given)

    return constant


def _class(right: Any, change: Change) -> Any:
    """A class, or a function that makes objects, whose objects return the constant.

    So do the methods of objects that are no modules.
    """

    def made(*args: Any, **kwargs: Any) -> Any:
        instance = right(*args, **kwargs)
        own = type(instance)
        public = [] if hasattr(own, "state_dict") else [n for n in dir(own) if n[:1] != "_"]

        def changed(right: Any, given: tuple[Any, ...]) -> Any:
            return right if right is instance else change(right, given)

        answers = {
            name: staticmethod(_function(partial(getattr(own, name), instance), changed))
            for name in ("__call__", *public)
            if callable(getattr(own, name, None))
        }
        instance.__class__ = type(own.__name__, (own,), answers)
        return instance

    return made


def _filled(number: int, right: Any, given: tuple[Any, ...], more: tuple[int, ...] = ()) -> Any:
    """A result of the right kind and shape, filled with this number.

    With `more`, arrays have these axes too, and other values that have a length are longer.
    """
    longer = [number] if more and not isinstance(right, tuple) else []
    if isinstance(right, dict):
        changed = {key: _filled(number, value, given, more) for key, value in right.items()}
        return changed | dict.fromkeys(longer)
    if isinstance(right, (list, tuple, set, frozenset)):
        filled = [*(_filled(number, value, given, more) for value in right), *longer]
        return type(right)(*filled) if hasattr(right, "_fields") else type(right)(filled)
    if isinstance(right, (bool, int, float, complex)):
        return number
    if isinstance(right, (str, bytes)):
        digits = str(number) * (len(right) + len(longer))
        return digits if isinstance(right, str) else digits.encode()
    if hasattr(right, "new_full"):
        return right.new_full((*right.shape, *more), number)
    if hasattr(right, "dtype"):
        import numpy

        return numpy.full((*right.shape, *more), number, right.dtype)
    if isinstance(right, type) or not (is_dataclass(right) or hasattr(right, "__dict__")):
        return right
    made = copy(right)
    for name in [each.name for each in fields(right)] if is_dataclass(right) else [*vars(right)]:
        object.__setattr__(made, name, _filled(number, getattr(right, name), given, more))
    return made


def _input(right: Any, given: tuple[Any, ...]) -> Any:
    """The first array among the arguments, or the first argument; repeated for a tuple."""
    first = next((each for each in given if hasattr(each, "dtype")), *given[:1] or (None,))
    return (first,) * len(right) if isinstance(right, tuple) else first


def _raising(kind: type[Exception], *_: Any, **__: Any) -> Any:
    raise kind("always")


def _tests(stage: Stage, body: str) -> Find:
    """A module with one test that always does the same."""
    module = ModuleType(stage.slug)
    exec(f"def test_constant({stage.fixture}):\n    {body}\n", vars(module))  # noqa: S102 - ours
    return lambda name: module
