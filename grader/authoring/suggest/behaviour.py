"""Makes the calls of a stage's checks to other implementations than the solution.

All code here is the author's own and runs in this process.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from grader.authoring.suggest.types import Call
from grader.authoring.verify.runs import silence
from grader.diagnosis.comparison.replay import PARAMETERS, Replays
from grader.diagnosis.comparison.replies import Read, equal, same
from grader.run.facts import Exchange, StageFacts
from grader.run.stopping import stopped_after
from grader.run.worker.packing import Unpacker
from grader.run.worker.wire import WireError

Find = Callable[[str], Any]
_SECONDS = 3.0  # for all that is asked of one implementation


class How(Enum):
    """How an implementation answers what the checks ask, compared with the solution."""

    SAME = "same"
    OTHER = "other"
    BROKEN = "broken"  # most of its other answers are errors, nothing or of another type


class Answers:
    """The answers to what the checks ask, of the solution and of others.

    `facts` are those of a run of the checks on the solution `right`. Checks may have failed in it,
    as long as they have called it.
    """

    def __init__(self, facts: StageFacts, right: Find) -> None:
        self._cases = [fact for fact in facts.cases if fact.exchanges]
        self._asked = [exchange for fact in self._cases for exchange in fact.exchanges]
        self._right = self.of(right)

    @property
    def count(self) -> int:
        """How many requests there are."""
        return len(self._asked)

    def calls(self, names: Mapping[str, Sequence[str]]) -> Iterator[Call]:
        """The different calls of functions, given with the names of their parameters."""
        seen: list[Call] = []
        for exchange in self._asked:
            call = _call(exchange, names)
            if call and not any(alike(call, other) for other in seen):
                seen.append(call)
                yield call

    def of(self, find: Find) -> list[Read]:
        """The answers of an implementation. Raises Stopped if they take too long."""
        with warnings.catch_warnings(), silence(), stopped_after(_SECONDS):
            warnings.simplefilter("ignore")
            return [
                read
                for fact in self._cases
                for read in Replays().of_solution(fact.case.id, fact.exchanges, find)
            ]

    def how(self, answers: Sequence[Read]) -> How:
        """How these answers compare with the solution's."""
        if self.are_same(answers, self._right):
            return How.SAME
        pairs = zip(answers, self._right, strict=True)
        differing = [
            (one, right)
            for at, (one, right) in enumerate(pairs)
            if not self._is_same(at, one, right)
        ]
        values = sum(
            not _is_empty(one) and (_is_empty(right) or type(one.value) is type(right.value))
            for one, right in differing
        )
        return How.OTHER if 2 * values >= len(differing) else How.BROKEN

    def are_same(self, one: Sequence[Read], other: Sequence[Read]) -> bool:
        """Whether two implementations answer alike, in each case up to where a check stops."""
        at = 0
        for fact in self._cases:
            places = range(at, at := at + len(fact.exchanges))
            for place in places:
                if not self._is_same(place, one[place], other[place]):
                    return False
                if not self._is_same(place, one[place], self._right[place]):
                    break
        return True

    def _is_same(self, at: int, one: Read, other: Read) -> bool:
        method = self._asked[at].request.target.get("method")
        return same(one, other, method in PARAMETERS, self._right[at].error is not None)


def _is_empty(read: Read) -> bool:
    """Whether an answer is an error, or nothing."""
    return read.error is not None or read.value is None


def _call(exchange: Exchange, names: Mapping[str, Sequence[str]]) -> Call | None:
    header = exchange.request.header
    entry = exchange.request.target.get("function", "")
    if header.get("op") != "call" or entry not in names:
        return None
    try:
        unpacker = Unpacker(exchange.request, handle=_refuse)
        given = unpacker.unpack(header["args"])
        named = unpacker.unpack(header["kwargs"])
    except WireError:
        return None
    return Call(entry, {**dict(zip(names[entry], given, strict=False)), **named})


def _refuse(number: int, name: str) -> Any:
    raise WireError("a module cannot be written down")


def alike(one: Call, other: Call) -> bool:
    """Whether two calls are the same."""
    return one.entry == other.entry and equal(dict(one.given), dict(other.given))


@dataclass(frozen=True)
class Outcome:
    """What a call gave: its value, or the name of the error."""

    value: Any = None
    error: str = ""

    def equals(self, other: Outcome) -> bool:
        """Whether two calls gave the same."""
        if self.error or other.error:
            return self.error == other.error
        return equal(self.value, other.value)


def outcome(find: Find, call: Call) -> Outcome | None:
    """What an implementation gives; None for an error other than a ValueError, and for no end."""
    given = copy.deepcopy(dict(call.given))
    try:
        with warnings.catch_warnings(), silence(), stopped_after(_SECONDS):
            warnings.simplefilter("ignore")
            return Outcome(find(call.entry)(**given))
    except KeyboardInterrupt:
        raise
    except ValueError as error:
        return Outcome(error=type(error).__name__)
    except BaseException:  # noqa: BLE001 - a wrong answer may raise anything
        return None
