"""What the solution or a misconception answers to the requests that a check made.

All requests of a check and the learner's replies are on record. This module sends the same requests
to another implementation, in this process, and compares its answers with the learner's.
"""

from __future__ import annotations

import cmath
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Generic, TypeVar

from grader.diagnosis.starts import is_named_tensor, misshapen_alike, start_alike
from grader.run.facts import CaseFact, Ending, Exchange, StageFacts
from grader.run.local_answers import answered_here
from grader.run.worker.bench import Bench
from grader.run.worker.packing import Handle, Opaque, PlainObject, Unpacker
from grader.run.worker.wire import Frame, WireError

_FAILED = (Ending.WRONG, Ending.RAISED)
_PASSED = (Ending.PASSED, Ending.SKIPPED)
# Relative and absolute tolerance between two computations of the same numbers, by dtype.
_ROOM = {"float64": (1e-7, 1e-9), "float32": (1e-3, 1e-5)}
_HALF_ROOM = (3e-2, 3e-2)
PARAMETERS = ("named_parameters", "state_dict")  # methods whose result may be freshly drawn
_LARGER = 4  # times the right answer's bytes: such an answer is far larger
_SMALL = 40_000  # bytes: an answer with fewer is not
_MODERATE = 100  # numbers up to this size are ordinary
_REPLAYS_CAP = 32 << 20  # bytes of the replays that are kept, roughly
_STEPS_CAP = 4 << 20  # and of the steps
_OVERHEAD = 4000  # bytes of an answer beside its arrays
_NO_ANSWER = 500  # bytes of the note that it is the solution's
Key = TypeVar("Key")
Value = TypeVar("Value")
# What an exception's message says beside the mistake: whose method it is, what was read of None,
# the name of the class that state does not fit, and on which axis an index is too large.
_BESIDE = re.compile(
    r"\b\w+\.(?=\w+\(\))|(?<='NoneType' object has no attribute ).*"
    r"|(?<=in loading state_dict for )\w+|(?<=is out of bounds) for dimension \d+"
)
# Which of two tensors is a depends on the style: x.masked_fill(...) or x.masked_fill_(...).
_TWO_SIZES = re.compile(r"(?<=The size of tensor a )\((\d+)\)(.*?)\((\d+)\)")
_LONGEST = 600  # characters of a message to look at


@dataclass(frozen=True)
class Read:
    """An unpacked reply: an error, or a value, the changed arguments and what requires grad.

    `size` is how many bytes its arrays take.
    """

    error: dict[str, Any] | None = None
    value: Any = None
    changed: Any = None
    grads: tuple[bool, ...] = ()
    size: int = 0


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
        return all(map(_is_moderate, given)) and not any(
            map(_has_bare_row, arrays(self.solution.value))
        )

    def agrees(self, other: Read, accepts_wider: Callable[[str | None], bool]) -> bool:
        """Whether an implementation answers as the learner's code does.

        Where the learner's answer is wrong beyond a rounding to float32, a rounding makes
        no difference; nor does float64 in place of float32, if the entry point `accepts_wider`.
        """
        learner = self.learner
        if same(learner, other, self.fresh, self.solution.error is not None):
            return True
        if self.drawn and _of_one_kind(learner, other):
            return True
        if learner.error is not None or other.error is not None:
            return False
        if misshapen_alike(learner.value, other.value, self.solution.value):
            return True
        if self.fresh:
            return False
        if _is_same_rounded(learner, self.solution):
            return False
        if not _is_same_rounded(learner, other):
            return False
        return _kind(learner.value) == _kind(other.value) or accepts_wider(self.entry)

    @property
    def is_wider(self) -> bool:
        """Whether the learner's answer is float64 where the solution's is float32."""
        learner, solution = _kind(self.learner.value), _kind(self.solution.value)
        return learner != solution and _kind(_rounded(self.learner.value)) == solution

    @property
    def is_only_wider(self) -> bool:
        """Whether the learner's answer is the solution's, in float64 in place of float32."""
        return self.is_wider and _is_same_rounded(self.learner, self.solution)

    @property
    def is_hidden(self) -> bool:
        """Whether an exception stands where the learner's answer would tell mistakes apart.

        It is a mistake of its own, and speaks neither for nor against any other.
        """
        return self.learner.error is not None and self.solution.error is None


class _Recent(Generic[Key, Value]):
    """The values that were used last, of roughly `cap` bytes in all."""

    def __init__(self, cap: int) -> None:
        self._left = cap
        self._values: dict[Key, tuple[Value, int]] = {}

    def take(self, key: Key) -> Value | None:
        """The value of a key, which is no longer kept, or None."""
        value, size = self._values.pop(key, (None, 0))
        self._left += size
        return value

    def keep(self, key: Key, value: Value, size: int) -> None:
        """Keep a value in front of all others."""
        self.take(key)
        self._values[key] = value, size
        self._left -= size
        while self._left < 0:
            self.take(next(iter(self._values)))


class Replays:
    """The answers of the solution and the misconceptions to recorded requests, computed on demand.

    They are kept, because in a class most later facts repeat the same requests, up to where a check
    stops.
    """

    def __init__(self) -> None:
        self.go_on: Callable[[], None] = lambda: None  # raises if no time is left
        self._known: _Recent[tuple[str, int, bytes], _KeptAnswer] = _Recent(_REPLAYS_CAP)
        self._steps: _Recent[int, list[Step]] = _Recent(_STEPS_CAP)  # by the fact's number
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
            kept = self._known.take(key)
            if kept is None:
                self.go_on()
                tried = self._tried.setdefault(id, {})
                frames = frames or _replay(exchanges, find, seed_shift, tried)
                frame = next(islice(frames, number - given, None))
                given = number + 1
                kept = _kept_answer(exchange, frame, steps[number] if steps else None)
            self._known.keep(key, kept, kept.size)
            yield kept.answer

    def steps(self, fact: CaseFact, solution: Callable[[str], Any]) -> list[Step]:
        """The requests of a case, each with the learner's answer and the solution's."""
        number = fact.number
        steps = None if number is None else self._steps.take(number)
        steps = steps or list(against_solution(fact, solution, self))
        if number is not None:
            size = sum(_OVERHEAD + len(each.reply.data) for each in fact.exchanges)
            self._steps.keep(number, steps, size)
        return steps


@dataclass(frozen=True)
class _KeptAnswer:
    """A known answer, None if it is the solution's, and the bytes that it takes, roughly."""

    answer: Read | None
    size: int


def _kept_answer(exchange: Exchange, frame: Frame, step: Step | None) -> _KeptAnswer:
    answer = _answer(exchange.request, frame)
    if step is not None and (
        same(step.solution, answer, step.fresh, False)
        or (step.drawn and _of_one_kind(step.solution, answer))
    ):
        return _KeptAnswer(None, _NO_ANSWER)
    return _KeptAnswer(answer, _OVERHEAD + len(frame.data))


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
        learner = _answer(exchange.request, exchange.reply)
        other = next(others, answer)
        differs = not same(answer, other, False, False)
        random, drawn = differs and method in PARAMETERS, differs and is_unset
        deviates = not same(learner, answer, random, answer.error is not None)
        if deviates and (drawn or passed) and learner.error is None and answer.error is None:
            of_one_kind = drawn and _of_one_kind(learner, answer)
            deviates = not of_one_kind and not (passed and _is_same_rounded(learner, answer))
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


def arrays(value: Any) -> list[Any]:
    """The tensors and arrays in a value: the value itself, or in lists, tuples and dictionaries."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in arrays(item)]
    return [value] if hasattr(value, "dtype") and hasattr(value, "shape") else []


def wide(array: Any) -> Any:
    """The numbers as numpy's float64, with truth values as 0 and 1."""
    import numpy

    if hasattr(array, "data_ptr"):
        array = array.detach().cpu()
        array = (array if array.is_complex() else array.double()).numpy()
    return array if array.dtype.kind == "c" else numpy.asarray(array, dtype=numpy.float64)


def _is_moderate(array: Any) -> bool:
    name = str(array.dtype).removeprefix("torch.")
    if not name.startswith("float"):
        return name != "bfloat16"
    values = wide(array)
    return name in _ROOM and bool((abs(values) <= _MODERATE).all())  # False for NaN


def _has_bare_row(array: Any) -> bool:
    name = str(array.dtype).removeprefix("torch.")
    if not name.startswith("float") or array.ndim < 2 or array.shape[-1] < 2 or not array.size:
        return False
    values = wide(array)
    return bool((values == values[..., :1]).all(axis=-1).any())


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
            self._steps[case] = self.replays.steps(self.cases[case], self.solution)
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


def same(one: Read, other: Read, fresh: bool, expects_error: bool) -> bool:
    """Whether two answers to the same request are the same.

    If an error was expected, any two errors of one type are the same; otherwise their texts must
    also agree.
    """
    if one.error is not None or other.error is not None:
        if one.error is None or other.error is None:
            return False
        if one.error.get("type") != other.error.get("type"):
            return False
        return expects_error or _message(one.error) == _message(other.error)
    if fresh:
        return start_alike(one.value, other.value)
    same_grads = one.grads == other.grads
    return same_grads and equal(one.value, other.value) and equal(one.changed, other.changed)


def _kind(value: Any) -> list[tuple[tuple[int, ...], str]]:
    """The shapes and dtypes of a value's arrays."""
    return [(tuple(array.shape), str(array.dtype)) for array in arrays(value)]


def _of_one_kind(one: Read, other: Read) -> bool:
    """Whether two answers have the same type and hold arrays of the same shapes and dtypes."""
    if one.error is not None or other.error is not None:
        return False
    kinds = _kind(one.value)
    same_kind = bool(kinds) and kinds == _kind(other.value) and one.grads == other.grads
    return same_kind and type(one.value) is type(other.value) and equal(one.changed, other.changed)


def _is_same_rounded(one: Read, other: Read) -> bool:
    """Whether two answers that are no exceptions are the same with float64 rounded to float32."""
    if one.grads != other.grads:
        return False
    values = equal(_rounded(one.value), _rounded(other.value))
    return values and equal(_rounded(one.changed), _rounded(other.changed))


def _rounded(value: Any) -> Any:
    """The value with float32 arrays in place of float64 ones."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(_rounded, value))
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if str(getattr(value, "dtype", "")).removeprefix("torch.") != "float64":
        return value
    if hasattr(value, "data_ptr"):
        return value.float()
    import numpy as np

    with np.errstate(over="ignore"):  # a learner's numbers may be too large
        return value.astype("float32")


def _answer(request: Frame, reply: Frame) -> Read:
    """Unpack the reply to a request.

    The names that load_state_dict misses tell nothing: a buffer may be saved or not, and whoever
    misses a parameter asks for the parameters next.
    """
    is_load = request.target.get("method") == "load_state_dict"
    return replace(read(reply), value=None) if is_load else read(reply)


def _message(error: Mapping[str, Any]) -> str:
    """The text of an exception, as far as it is about the mistake.

    Its lines are sorted: torch lists what does not fit in a state_dict as the layers were made.
    """
    lines = sorted(str(error.get("message"))[: 4 * _LONGEST].split("\n"))
    text = _BESIDE.sub("", "\n".join(lines))[:_LONGEST]
    return _TWO_SIZES.sub(lambda two: two[2].join(sorted((two[1], two[3]))), text)


def read(reply: Frame) -> Read:
    """Unpack a reply; an invalid one is an error like any other."""
    header = reply.header
    error = header.get("error")
    if error is not None:
        return Read(error=error if isinstance(error, dict) else {})
    try:
        unpacker = Unpacker(reply)
        value, changed = (
            unpacker.unpack(header.get("value")),
            unpacker.unpack(header.get("changed")),
        )
    except WireError as failure:
        return Read(error={"type": "WireError", "message": str(failure)})
    entries = header.get("arrays", [])
    grads = tuple(bool(entry.get("grad")) for entry in entries)
    return Read(None, value, changed, grads, len(reply.data))


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal, with the tolerance of their dtype for numbers."""
    if isinstance(one, Handle) and isinstance(other, Handle):
        return True
    if isinstance(one, Opaque) and isinstance(other, Opaque):
        return one.type_name == other.type_name
    if isinstance(one, (list, tuple)) and type(one) is type(other):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, (float, complex)) and type(one) is type(other):
        close = cmath.isclose(one, other, rel_tol=_ROOM["float64"][0], abs_tol=_ROOM["float64"][1])
        return close or (cmath.isnan(one) and cmath.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, PlainObject) and isinstance(other, PlainObject):
        return equal(vars(one), vars(other))
    if hasattr(one, "dtype") and hasattr(other, "dtype"):
        return _close(one, other)
    return type(one) is type(other) and bool(one == other)


def room(array: Any) -> tuple[float, float]:
    """The relative and the absolute tolerance of an array's dtype."""
    name = str(array.dtype).removeprefix("torch.")
    return _ROOM.get(name, _HALF_ROOM if "float" in name else (0.0, 0.0))


def _close(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or one.dtype != other.dtype or one.shape != other.shape:
        return False
    relative, absolute = room(one)
    if hasattr(one, "data_ptr"):
        import torch

        one, other = one.cpu(), other.cpu()
        wide = torch.complex128 if one.is_complex() else torch.float64
        return torch.equal(one, other) or torch.allclose(  # most are equal, and this is quick
            one.to(wide), other.to(wide), relative, absolute, equal_nan=True
        )
    import numpy

    return bool(numpy.allclose(one, other, relative, absolute, equal_nan=True))
