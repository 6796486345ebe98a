"""Which known misconception explains a failing stage: replay what the checks asked, and compare.

Everything that passed between a check and the learner's code is on record. The same requests are
put to the solution and to each misconception, in this process. A misconception is named for a check
only if, wherever it parts from the solution in the whole stage, the learner's code answered as it
does, and it does so at least once in that check. One that leaves another equally likely is not
named: an unknown mistake must never get a wrong name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from grader.misconceptions import Misconception
from grader.run.facts import CaseFact, Ending, Exchange, StageFacts
from grader.run.worker.bench import Bench
from grader.run.worker.wire import Frame, Handle, Opaque, Unpacker, WireError
from grader.types.report import Diagnosis

_FAILED = (Ending.WRONG, Ending.RAISED)
_PASSED = (Ending.PASSED, Ending.SKIPPED)
# Relative and absolute room between two computations of the same numbers, by dtype.
_ROOM = {"float64": (1e-7, 1e-9), "float32": (1e-3, 1e-5)}
_HALF_ROOM = (3e-2, 3e-2)
_MANY = 4096  # parameters of this many values are compared by their spread
_SPREAD_ROOM = 0.05
_CHECKS_TO_START_FROM = 8


@dataclass(frozen=True)
class _Step:
    """One recorded request, what the learner answered and what the solution answers."""

    exchange: Exchange
    solution: Frame
    random: bool  # the solution's own answer changes with the seed
    deviates: bool  # the learner's answer is not the solution's


def diagnose(
    facts: StageFacts,
    misconceptions: Sequence[Misconception],
    solution: Callable[[str], Any],
) -> dict[str, Diagnosis]:
    """The diagnosis of each failing check of a stage that has one, by the check's id.

    `solution` gives the right implementation of an entry point's name.
    """
    return named(facts, misconceptions, explanations(facts, misconceptions, solution))


def named(
    facts: StageFacts,
    misconceptions: Sequence[Misconception],
    explained: dict[str, dict[str, int]],
) -> dict[str, Diagnosis]:
    """The diagnosis of each failing check that one of the `explanations` wins clearly."""
    by_id = {suspect.id: suspect for suspect in misconceptions}
    diagnoses = {}
    for check in dict.fromkeys(fact.case.check for fact in _failed(facts)):
        best = _best(check, explained)
        if best is not None:
            found = by_id[best]
            diagnoses[check] = Diagnosis(found.id, found.says, found.hint)
    return diagnoses


def explanations(
    facts: StageFacts,
    misconceptions: Sequence[Misconception],
    solution: Callable[[str], Any],
) -> dict[str, dict[str, int]]:
    """For each misconception that nothing contradicts: the wrong answers of each check it gives.

    To be quick the suspects are first sought in one failing case of each check, and only they are
    then held against the whole stage.
    """
    failed = _failed(facts)
    if not failed or not misconceptions:
        return {}
    steps: dict[str, list[_Step]] = {}

    def recorded(fact: CaseFact) -> list[_Step]:
        if fact.case.id not in steps:
            steps[fact.case.id] = list(_against_solution(fact, solution))
        return steps[fact.case.id]

    suspects: dict[str, Misconception] = {}
    first_of_check = {fact.case.check: fact for fact in reversed(failed)}
    for fact in list(reversed(first_of_check.values()))[:_CHECKS_TO_START_FROM]:
        for suspect in misconceptions:
            if suspect.id not in suspects and _explained(recorded(fact), suspect, solution):
                suspects[suspect.id] = suspect
    explained = {}
    for suspect in suspects.values():
        by_check = _agreement(facts.cases, recorded, suspect, solution)
        if by_check is not None:
            explained[suspect.id] = by_check
    return explained


def _failed(facts: StageFacts) -> list[CaseFact]:
    return [fact for fact in facts.cases if fact.ending in _FAILED and fact.exchanges]


def _best(check: str, explained: dict[str, dict[str, int]]) -> str | None:
    """The suspect that explains this check and the most answers of the stage; None at a tie."""
    able = [name for name, by_check in explained.items() if by_check.get(check)]
    ranked = sorted(able, key=lambda name: -sum(explained[name].values()))
    totals = [sum(explained[name].values()) for name in ranked]
    if not ranked or (len(ranked) > 1 and totals[0] == totals[1]):
        return None
    return ranked[0]


def _agreement(
    facts: Sequence[CaseFact],
    recorded: Callable[[CaseFact], list[_Step]],
    suspect: Misconception,
    solution: Callable[[str], Any],
) -> dict[str, int] | None:
    """How many deviating answers of each check a suspect explains; None if one contradicts it."""
    found: dict[str, int] = {}
    for fact in facts:
        if fact.ending not in _FAILED + _PASSED:
            continue
        count = _explained(recorded(fact), suspect, solution)
        if count is None:
            return None
        found[fact.case.check] = found.get(fact.case.check, 0) + count
    return found


def _explained(
    steps: Sequence[_Step], suspect: Misconception, solution: Callable[[str], Any]
) -> int | None:
    """How many of the learner's deviating answers the suspect gives too; None if one differs."""

    def find(name: str) -> Any:
        return suspect.implementation if name == suspect.replaces else solution(name)

    count = 0
    answers = _replay([step.exchange for step in steps], find)
    for step, answer in zip(steps, answers, strict=True):
        own = step.exchange.request.header
        function = (own.get("target") or {}).get("function", suspect.replaces)
        if function != suspect.replaces:
            continue
        expects_error = "error" in step.solution.header
        as_learner = _same(step.exchange, answer, expects_error)
        if as_learner and step.deviates:
            count += 1
        elif not as_learner and not step.random:
            as_solution = _same(Exchange(step.exchange.request, step.solution), answer, False)
            if not as_solution:
                return None
    return count


def _against_solution(fact: CaseFact, solution: Callable[[str], Any]) -> Iterator[_Step]:
    exchanges = fact.exchanges
    answers = list(_replay(exchanges, solution))
    others = list(_replay(exchanges, solution, seed_shift=1))
    for exchange, answer, other in zip(exchanges, answers, others, strict=True):
        at_call = exchange.request.header.get("op") == "call"
        random = at_call and not _same(Exchange(exchange.request, other), answer, False)
        deviates = not _same(exchange, answer, "error" in answer.header)
        yield _Step(exchange, answer, random, deviates)


def _replay(
    exchanges: Sequence[Exchange], find: Callable[[str], Any], seed_shift: int = 0
) -> Iterator[Frame]:
    """The answers of the implementation behind `find` to recorded requests.

    Numbers of calls and objects are translated, since an implementation that raises where the
    learner's did not counts differently. Parameters that were read from the learner's module are
    copied into this one's, so that later answers can be compared.
    """
    bench = Bench(find)
    calls: dict[Any, Any] = {}
    objects: dict[Any, Any] = {}
    for exchange in exchanges:
        header = dict(exchange.request.header)
        target = dict(header.get("target") or {})
        if "object" in target:
            target["object"] = objects.get(target["object"], -1)
            header["target"] = target
        if header.get("op") == "backward":
            header["call"] = calls.get(header["call"], -1)
        if header.get("seed") is not None:
            header["seed"] += seed_shift
        answer = bench.answer(Frame(header, exchange.request.data))
        yield answer
        theirs, ours = exchange.reply.header, answer.header
        if "call" in theirs and "call" in ours:
            calls[theirs["call"]] = ours["call"]
        their_handle, our_handle = _handle(theirs), _handle(ours)
        if their_handle is not None and our_handle is not None:
            objects[their_handle] = our_handle
        if target.get("method") == "named_parameters":
            _copy_parameters(exchange.reply, bench, target["object"])


def _handle(header: dict[str, Any]) -> Any:
    value = header.get("value")
    return value.get("handle") if isinstance(value, dict) else None


def _copy_parameters(reply: Frame, bench: Bench, number: int) -> None:
    """Load what `named_parameters` gave for the learner's module into the replayed one."""
    import torch

    named = _value(reply)
    module = bench.held(number)
    if module is None or not isinstance(named, list):
        return
    own = dict(module.named_parameters())
    with torch.no_grad():
        for pair in named:
            if not isinstance(pair, tuple) or len(pair) != 2 or pair[0] not in own:
                continue
            if own[pair[0]].shape == getattr(pair[1], "shape", None):
                own[pair[0]].copy_(pair[1])


def _same(exchange: Exchange, answer: Frame, expects_error: bool) -> bool:
    """Whether a reply and another answer to the same request are the same.

    Where an error was due, any two errors of one type are; elsewhere their texts must agree too.
    """
    reply = exchange.reply.header
    error, other = reply.get("error"), answer.header.get("error")
    if error is not None or other is not None:
        if error is None or other is None or error.get("type") != other.get("type"):
            return False
        return expects_error or error.get("message") == other.get("message")
    try:
        mine, yours = Unpacker(exchange.reply), Unpacker(answer)
        value, other_value = (
            mine.unpack(reply.get("value")),
            yours.unpack(answer.header.get("value")),
        )
        changed = mine.unpack(reply.get("changed")), yours.unpack(answer.header.get("changed"))
    except WireError:
        return False
    method = (exchange.request.header.get("target") or {}).get("method")
    if method == "named_parameters":
        return _alike(value, other_value)
    grads = [[bool(e.get("grad")) for e in u.frame.header.get("arrays", [])] for u in (mine, yours)]
    return grads[0] == grads[1] and _equal(value, other_value) and _equal(*changed)


def _value(reply: Frame) -> Any:
    try:
        return Unpacker(reply).unpack(reply.header.get("value"))
    except WireError:
        return None


def _equal(one: Any, other: Any) -> bool:
    """Whether two values are equal, numbers within the room of their dtype."""
    if isinstance(one, Handle) and isinstance(other, Handle):
        return True
    if isinstance(one, Opaque) and isinstance(other, Opaque):
        return one.type_name == other.type_name
    if isinstance(one, (list, tuple)) and type(one) is type(other):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if hasattr(one, "dtype") and hasattr(other, "dtype"):
        return _close(one, other)
    return type(one) is type(other) and bool(one == other)


def _close(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or one.dtype != other.dtype or one.shape != other.shape:
        return False
    name = str(one.dtype).removeprefix("torch.")
    relative, absolute = _ROOM.get(name, _HALF_ROOM if "float" in name else (0.0, 0.0))
    if hasattr(one, "data_ptr"):
        import torch

        wide = torch.complex128 if one.is_complex() else torch.float64
        return torch.allclose(
            one.cpu().to(wide), other.cpu().to(wide), relative, absolute, equal_nan=True
        )
    import numpy

    return bool(numpy.allclose(one, other, relative, absolute, equal_nan=True))


def _alike(one: Any, other: Any) -> bool:
    """Whether two lists of fresh parameters have the same names, shapes and spread."""
    if not isinstance(one, list) or not isinstance(other, list) or len(one) != len(other):
        return False
    for (name, tensor), (other_name, other_tensor) in zip(one, other, strict=True):
        if name != other_name or tensor.shape != other_tensor.shape:
            return False
        if tensor.dtype != other_tensor.dtype:
            return False
        if bool((tensor == 0).all()) != bool((other_tensor == 0).all()):
            return False
        if tensor.numel() >= _MANY:
            spread, other_spread = float(tensor.std()), float(other_tensor.std())
            if abs(spread - other_spread) > _SPREAD_ROOM * max(spread, other_spread):
                return False
    return True
