"""What the solution or a misconception answers to the requests that a check made.

All requests of a check and the learner's replies are on record. This module sends the same requests
to another implementation, in this process, and compares its answers with the learner's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from grader.diagnosis.comparison.replies import (
    Read,
    answer_of,
    arrays,
    has_bare_row,
    in_order_of,
    is_moderate,
    is_same_rounded,
    kinds_of,
    of_one_kind,
    read,
    same,
    to_float32,
)
from grader.diagnosis.comparison.starts import is_named_tensor, misshapen_alike
from grader.run.facts import CaseFact, Ending, Exchange, StageFacts
from grader.run.local_answers import answered_here
from grader.run.worker.bench import Bench
from grader.run.worker.packing import Unpacker
from grader.run.worker.wire import Frame

_FAILED = (Ending.WRONG, Ending.RAISED)
_PASSED = (Ending.PASSED, Ending.SKIPPED)
PARAMETERS = ("named_parameters", "state_dict")  # methods whose result may be freshly drawn
_LARGER = 4  # times the right answer's bytes: such an answer is far larger
_SMALL = 40_000  # bytes: an answer with fewer is not
_REPLAYS_CAP = 32 << 20  # bytes of the replays that are kept, roughly
_OVERHEAD = 4000  # bytes of an answer beside its arrays
_NO_ANSWER = 500  # bytes of the note that it is the solution's


@dataclass(frozen=True)
class Step:
    """One recorded request, with the learner's answer and the solution's.

    `mark` stands for all that another implementation's answer depends on.
    """

    exchange: Exchange
    mark: bytes
    entry: str | None  # the entry point that answers, itself or through an object that it made
    learner: Read
    solution: Read
    fresh: bool  # the answer holds freshly drawn parameters: compare only names and spread
    deviates: bool  # the learner's answer differs from the solution's
    drawn: bool = False  # the answer depends on freshly drawn parameters: compare only its kind

    @cached_property
    def is_ordinary(self) -> bool:
        """Whether the request is no edge case: moderate numbers, no error expected, no bare row.

        All numbers must be finite. A row is bare if the solution returns the same number throughout
        the last axis.
        """
        header = self.exchange.request.header
        if self.solution.error is not None or "args" not in header:  # a backward pass has no target
            return False
        unpacker = Unpacker(self.exchange.request)
        given = arrays([unpacker.unpack(header["args"]), unpacker.unpack(header["kwargs"])])
        return all(map(is_moderate, given)) and not any(
            map(has_bare_row, arrays(self.solution.value))
        )

    def agrees(self, other: Read, accepts_wider: Callable[[str | None], bool]) -> bool:
        """Whether an implementation answers as the learner's code does.

        Where the learner's answer is wrong beyond a rounding to float32, a rounding makes
        no difference; nor does float64 in place of float32, if the entry point `accepts_wider`.
        """
        learner = self.learner
        if same(learner, other, self.fresh, self.solution.error is not None):
            return True
        if self.drawn and of_one_kind(learner, other):
            return True
        if learner.error is not None or other.error is not None:
            return False
        if misshapen_alike(learner.value, other.value, self.solution.value):
            return True
        if self.fresh or is_same_rounded(learner, self.solution):
            return False
        is_of_kind = kinds_of(learner.value) == kinds_of(other.value)
        return is_same_rounded(learner, other) and (is_of_kind or accepts_wider(self.entry))

    @property
    def is_wider(self) -> bool:
        """Whether the learner's answer is float64 where the solution's is float32."""
        learner, solution = kinds_of(self.learner.value), kinds_of(self.solution.value)
        return learner != solution and kinds_of(to_float32(self.learner.value)) == solution

    @property
    def is_only_wider(self) -> bool:
        """Whether the learner's answer is the solution's, in float64 in place of float32."""
        return self.is_wider and is_same_rounded(self.learner, self.solution)

    @property
    def is_hidden(self) -> bool:
        """Whether an exception stands where the learner's answer would tell mistakes apart.

        It is a mistake of its own, and speaks neither for nor against any other.
        """
        return self.learner.error is not None and self.solution.error is None


class Replays:
    """The answers of the solution and the misconceptions to recorded requests, computed on demand.

    They are kept, because in a class most later facts repeat the same requests, up to where a check
    stops. Roughly `cap` bytes are kept.
    """

    def __init__(self, cap: int = _REPLAYS_CAP) -> None:
        self.go_on: Callable[[], None] = lambda: None  # raises if no time is left
        self._left = cap
        # By implementation, shift of the seed and mark; the last used ones come last.
        self._known: dict[tuple[str, int, bytes], _KeptAnswer] = {}
        self._tried: dict[str, dict[str, Frame]] = {}  # by implementation and tests

    def of_solution(
        self,
        case: str,
        exchanges: Sequence[Exchange],
        find: Callable[[str], Any],
        seed_shift: int = 0,
        marks: Sequence[bytes] | None = None,
    ) -> Iterator[Read]:
        """The solution's answers to a case's requests; `find` returns its functions."""
        marks = list(_marks(case, exchanges)) if marks is None else marks
        for answer in self._of("", seed_shift, exchanges, marks, find, None):
            assert answer is not None
            yield answer

    def of_misconception(
        self, id: str, steps: Sequence[Step], find: Callable[[str], Any]
    ) -> Iterator[Read | None]:
        """The answers of a misconception to a case's requests; None if it gives the solution's."""
        exchanges = [step.exchange for step in steps]
        return self._of(id, 0, exchanges, [step.mark for step in steps], find, steps)

    def learn(self, id: str, facts: StageFacts, solution: Callable[[str], Any]) -> None:
        """Keep what a misconception answered in a run of the checks: it need not answer again."""
        for fact in facts.cases:
            for step in against_solution(fact, solution, self):
                kept = _kept_answer(step.learner, len(step.exchange.reply.data), step)
                self._keep((id, 0, step.mark), kept)

    def _of(
        self,
        id: str,
        seed_shift: int,
        exchanges: Sequence[Exchange],
        marks: Sequence[bytes],
        find: Callable[[str], Any],
        steps: Sequence[Step] | None,
    ) -> Iterator[Read | None]:
        """The answers of an implementation, which runs from the start if one is not known.

        Nothing but answers is kept: an implementation holds far more.
        """
        frames: Iterator[Frame] | None = None
        given = 0
        for number, (exchange, mark) in enumerate(zip(exchanges, marks, strict=True)):
            key = id, seed_shift, mark
            kept = self._known.get(key)
            if kept is None:
                self.go_on()
                tried = self._tried.setdefault(id, {})
                frames = frames or _replay(exchanges, find, seed_shift, tried)
                frame = next(islice(frames, number - given, None))
                given = number + 1
                answer = answer_of(exchange.request, frame)
                kept = _kept_answer(answer, len(frame.data), steps[number] if steps else None)
            self._keep(key, kept)
            yield kept.answer

    def _keep(self, key: tuple[str, int, bytes], kept: _KeptAnswer) -> None:
        """Keep an answer as the last used one; forget the others beyond the cap."""
        before = self._known.pop(key, None)
        self._known[key] = kept
        self._left -= kept.size - (before.size if before is not None else 0)
        while self._left < 0:
            self._left += self._known.pop(next(iter(self._known))).size


@dataclass(frozen=True)
class _KeptAnswer:
    """A known answer, None if it is the solution's, and the bytes that it takes, roughly."""

    answer: Read | None
    size: int


def _kept_answer(answer: Read, size: int, step: Step | None) -> _KeptAnswer:
    """What is kept of an answer to a step's request; `size` are the bytes of its arrays."""
    if step is not None and (
        same(step.solution, answer, step.fresh, False)
        or (step.drawn and of_one_kind(step.solution, answer))
    ):
        return _KeptAnswer(None, _NO_ANSWER)
    return _KeptAnswer(answer, _OVERHEAD + size)


def _marks(case: str, exchanges: Sequence[Exchange]) -> Iterator[bytes]:
    """A digest of all that the answer to each request depends on.

    That is the case, as two stages may have functions of one name, the request, those before it,
    and a few parts of the replies to these.
    """
    told: object = None  # of the reply before
    mark = case.encode()
    for exchange in exchanges:
        digest = exchange.request.sealed().digest
        mark = hashlib.sha256(b"".join((mark, digest, repr(told).encode()))).digest()
        yield mark
        reply = exchange.reply
        copied = exchange.request.target.get("method") == "named_parameters"
        told = reply.header.get("call"), reply.handle, reply.sealed().digest if copied else None


def against_solution(
    fact: CaseFact, solution: Callable[[str], Any], replays: Replays
) -> Iterator[Step]:
    """The recorded requests of a case, each with the learner's answer and the solution's.

    An answer that is far larger than the solution's is the last: what the check asks next may hold
    it, and could take this process any amount of memory and time.
    """
    case, exchanges = fact.case.id, fact.exchanges
    marks = list(_marks(case, exchanges))
    answers = replays.of_solution(case, exchanges, solution, 0, marks)
    methods = [each.request.target.get("method") for each in exchanges]
    unset = list(_of_unset_objects(exchanges))
    places = [n for n, method in enumerate(methods) if method in PARAMETERS or unset[n]]
    wanted = places[-1] + 1 if places else 0  # later ones need no second seed
    passed = fact.ending in _PASSED
    others = replays.of_solution(case, exchanges[:wanted], solution, 1, marks[:wanted])
    for exchange, mark, entry, answer, method, is_unset in zip(
        exchanges, marks, _entries(exchanges), answers, methods, unset, strict=True
    ):
        learner = in_order_of(answer, answer_of(exchange.request, exchange.reply))
        other = next(others, answer)
        differs = not same(answer, other, False, False)
        random, drawn = differs and method in PARAMETERS, differs and is_unset
        deviates = not same(learner, answer, random, answer.error is not None)
        if deviates and (drawn or passed) and learner.error is None and answer.error is None:
            is_alike = drawn and of_one_kind(learner, answer)
            deviates = not is_alike and not (passed and is_same_rounded(learner, answer))
        yield Step(exchange, mark, entry, learner, answer, random, deviates, drawn)
        if learner.size > max(_LARGER * answer.size, _SMALL):
            return


def _of_unset_objects(exchanges: Sequence[Exchange]) -> Iterator[bool]:
    """Whether each request calls an object whose parameters are those that it was made with.

    Those that were read were given to the other implementation's object too.
    """
    settled: set[Any] = set()
    for exchange in exchanges:
        request = exchange.request
        made, method = request.target.get("object"), request.target.get("method")
        is_call = "args" in request.header and method is None
        yield made is not None and made not in settled and is_call
        if method in ("load_state_dict", "named_parameters"):
            settled.add(made)


class Record:
    """The requests of a stage's checks, with the learner's answers and the solution's.

    If it `is_of_tests`, the learner's tests judged modules, and the cases with few modules come
    first, because it takes long to run other tests on each.
    """

    def __init__(self, facts: StageFacts, solution: Callable[[str], Any], replays: Replays) -> None:
        self.solution = solution
        self.replays = replays
        exchanges = [exchange for fact in facts.cases for exchange in fact.exchanges]
        all_readable = all(map(_is_readable, exchanges))
        self.is_of_tests = any(each.request.header.get("op") == "try" for each in exchanges)
        failed = [f for f in facts.cases if f.ending in _FAILED and f.exchanges and all_readable]
        if self.is_of_tests:
            failed.sort(key=lambda fact: len(fact.exchanges))
        passed = [f for f in facts.cases if f.ending in _PASSED and failed]
        self.cases = {fact.case.id: fact for fact in failed + passed}
        self.failed = [fact.case.id for fact in failed]
        self._steps: dict[str, list[Step]] = {}
        self._wider: dict[str | None, bool] = {}

    def accepts_wider(self, entry: str | None) -> bool:
        """Whether a check passed although an entry point answered in float64, not in float32."""
        if entry not in self._wider:
            passed = [case for case in self.cases if case not in self.failed]
            steps = (step for case in passed for step in self.steps(case))
            self._wider[entry] = any(step.entry == entry and step.is_wider for step in steps)
        return self._wider[entry]

    def failing(self) -> dict[str, list[str]]:
        """The failing cases of each failing check, in order."""
        found: dict[str, list[str]] = {}
        for case in self.failed:
            found.setdefault(self.cases[case].case.check, []).append(case)
        return found

    def steps(self, case: str) -> list[Step]:
        """The requests of a case, each with the learner's answer and the solution's."""
        if case not in self._steps:
            fact = self.cases[case]
            self._steps[case] = list(against_solution(fact, self.solution, self.replays))
        return self._steps[case]


def _entries(exchanges: Sequence[Exchange]) -> Iterator[str | None]:
    """The entry point that each request is about."""
    calls: dict[Any, str | None] = {}
    objects: dict[Any, str | None] = {}
    for exchange in exchanges:
        header, target, reply = exchange.request.header, exchange.request.target, exchange.reply
        if header.get("op") == "backward":
            yield calls.get(header["call"])
            continue
        entry = target.get("function", objects.get(target.get("object")))
        if "call" in reply.header:
            calls[reply.header["call"]] = entry
        if reply.handle is not None:
            objects.setdefault(reply.handle, entry)
        yield entry


def _replay(
    exchanges: Sequence[Exchange],
    find: Callable[[str], Any],
    seed_shift: int,
    tried: dict[str, Frame],
) -> Iterator[Frame]:
    """The answers of the implementation behind `find` to recorded requests.

    The numbers of calls and objects are translated, because an implementation that raises where the
    learner's did not counts differently. Parameters that were read from the learner's module are
    copied into this one, so that later answers can be compared. Test results stay in `tried`,
    because running tests takes long and gives the same for every seed.
    """
    bench = Bench(find)
    calls: dict[Any, Any] = {}
    objects: dict[Any, Any] = {}
    for exchange in exchanges:
        header = _translated(exchange.request.header, objects)
        if header.get("op") == "backward":
            header["call"] = calls.get(header["call"], -1)
        if header.get("seed") is not None:
            header["seed"] += seed_shift
        given = header["given"] if header.get("op") == "try" else None
        if given in tried:
            yield tried[given]
            continue
        answer = answered_here(bench, Frame(header, exchange.request.data))
        if given is not None:
            tried[given] = answer
        yield answer
        theirs, ours = exchange.reply, answer
        if "call" in theirs.header and "call" in ours.header:
            calls[theirs.header["call"]] = ours.header["call"]
        if theirs.handle is not None and ours.handle is not None:
            objects[theirs.handle] = ours.handle
        if exchange.request.target.get("method") == "named_parameters":
            _copy_parameters(theirs, bench, header["target"]["object"])


def _translated(data: Any, objects: Mapping[Any, Any]) -> Any:
    """A copy of a request's data with the local number of each object."""
    if isinstance(data, list):
        return [_translated(item, objects) for item in data]
    if not isinstance(data, dict):
        return data
    return {
        key: objects.get(value, -1)
        if key in ("object", "handle") and isinstance(value, int)
        else _translated(value, objects)
        for key, value in data.items()
    }


def _is_readable(exchange: Exchange) -> bool:
    """Whether a reply has the usual form; only a hostile worker sends any other."""
    header = exchange.reply.header
    is_numbered = isinstance(header.get("call"), (int, type(None)))
    return is_numbered and isinstance(header.get("error"), (dict, type(None)))


def _copy_parameters(reply: Frame, bench: Bench, number: int) -> None:
    """Copy what `named_parameters` returned for the learner's module into the replayed module."""
    import torch

    named = read(reply).value
    module = bench.held(number)
    if module is None or not isinstance(named, list):
        return
    own = {
        name: parameter
        for name, parameter in module.named_parameters()
        if not torch.nn.parameter.is_lazy(parameter)
    }
    with torch.no_grad():
        for name, tensor in filter(is_named_tensor, named):
            if name in own and own[name].shape == tensor.shape:
                own[name].copy_(tensor)
