"""What a check holds in place of the learner's code: functions and modules of another process."""

from __future__ import annotations

import random
import sys
import zlib
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from grader.run.answers import (
    AnswerError,
    Answers,
    Crash,
    SubmissionError,
    Timeout,
    WrongReturn,
    submission_error,
)
from grader.run.facts import CaseFact, Exchange, ForbiddenCall
from grader.run.transcripts import Key, Transcripts
from grader.run.trials import Trial, neutral, trial_of, vocabulary_of
from grader.run.worker.bridge import Caller, ChangedArgument
from grader.run.worker.wire import LAZY, Frame, Handle, Opaque, WireError
from grader.types.course import EntryPoint, Stage
from grader.types.text import safe

_RECORD_CAP = 32 << 20  # bytes that one stage's record may take


class Diverged(BaseException):
    """The check asks something else than it did before, for the same seed and the same replies."""


@dataclass
class Usage:
    """The most bytes that the tensors of one call took at once, beyond its inputs."""

    peak: int = 0


class StageUnderCheck:
    """One stage of a submission as its checks use it; keeps a record of what passed."""

    def __init__(self, stage: Stage, answers: Answers) -> None:
        self._stage = stage
        self._answers = answers
        self._exchanges: list[Exchange] = []
        self._recorded = 0
        self._answered = False
        self._seed = 0
        self._before: list[dict[str, Any]] = []
        self._given: deque[tuple[Frame, Frame | AnswerError]] = deque()
        self._usage: Usage | None = None
        self._trials: dict[str, Trial] = {}
        self.last_call = ""
        self.last_target = ""
        self.not_written = False
        self.has_lacked = False  # an entry point, in this case
        # Which arguments a call may change here as it did there; all, where no check compares them.
        self.is_watched: Callable[[Any], bool] = lambda array: True

    def begin(self, seed: int) -> None:
        """Start a case: nothing is left of the one before, and every call's seed follows `seed`."""
        self._exchanges = []
        self._seed = zlib.crc32(f"call:{seed}".encode())  # not the one the check draws with
        self.last_call = ""
        self.last_target = ""
        self.not_written = False
        self.has_lacked = False  # an entry point, in this case
        self._answered = False
        self._before = []
        self._given.clear()
        self._usage = None
        self._answers.begin()

    def follow(self, transcripts: Transcripts, key: Key) -> CaseFact | None:
        """The fact on the case that was begun, if it is known for the answers that come.

        If not, the check that runs next is given those answers before it asks for more.
        """
        try:
            fact = transcripts.follow(key, self._put)
        except AnswerError:
            return None  # the check that meets it is told
        if fact is not None:
            self._given.clear()
        return fact

    def _put(self, request: Frame, known: Container[bytes]) -> Frame:
        name = request.header.get("target", {}).get("function")
        if name is not None:
            self._answers.need(name)
        try:
            reply = self._answers.answer(request, known)
        except AnswerError as error:
            self._given.append((request, error))
            raise
        self._given.append((request, reply))
        return reply

    def end(self) -> tuple[Exchange, ...]:
        """End a case: what passed between the check and the learner's code.

        Nothing once a stage has passed more than the record may hold.
        """
        return tuple(self._exchanges) if self._recorded <= _RECORD_CAP else ()

    @property
    def has_answered(self) -> bool:
        """Whether the learner's code has answered anything in this case."""
        return self._answered

    @property
    def forbidden(self) -> tuple[ForbiddenCall, ...]:
        """What the learner's code was seen to call although the stage forbids it."""
        return self._answers.forbidden

    def close(self) -> str:
        """End the stage; returns what the learner's code printed."""
        return self._answers.close()

    def entry(self, name: str) -> Callable[..., Any]:
        """The learner's function or class `name`, to be called by a check."""
        for entry in self._stage.entry_points:
            if entry.name == name and not entry.is_fixture:
                return _Entry(self, entry)
        raise AttributeError(f"{name} is no entry point of stage {self._stage.slug}")

    def call(
        self, caller: Caller, name: str, args: Any, kwargs: Any, *, code: str, **target: Any
    ) -> Any:
        """One call by a check, with the next seed; `name` stands for it in messages.

        `code` is the function or "Class.method" whose code answers, "" if it is not the learner's:
        then no message speaks of the call.
        """
        if code:
            self.last_target = code
            self.last_call = f"{name}({_arguments(args, kwargs)})"
        self._seed += 1
        target["is_watched"] = self.is_watched
        try:
            return caller.call(target.pop("target"), args, kwargs, seed=self._seed, **target)
        except ChangedArgument as error:
            raise WrongReturn(f"{name}(...) {error}") from None
        except WireError as error:
            raise WrongReturn(f"{name}(...) gave an answer that makes no sense: {error}") from None

    def need(self, name: str) -> None:
        """Have the entry point at hand. Raises AnswerError."""
        self.has_lacked = True
        self._answers.need(name)
        self.has_lacked = False

    def before_the_next(self, target: dict[str, Any], *args: Any) -> None:
        """Have a method called before the next request is answered, which saves a round trip.

        Nobody wants its result; its exception becomes the next request's.
        """
        self._before.append({"target": target, "args": list(args)})

    def request(self, frame: Frame) -> Frame:
        """Send one request of a check and return the reply. Raises AnswerError."""
        if self._before:
            frame = Frame({**frame.header, "before": self._before}, frame.data)
            self._before = []
        if self._usage is not None:
            frame = Frame({**frame.header, "measured": True}, frame.data)
        reply = self._answer(frame)
        peak = reply.header.get("peak")
        if self._usage is not None and type(peak) is int:
            self._usage.peak = max(self._usage.peak, peak)
        self._answered = self._answered or "given" not in frame.header.get("target", {})
        self._recorded += len(frame.data) + reply.size
        if self._recorded <= _RECORD_CAP:
            self._exchanges.append(Exchange(frame, reply))
        return reply

    def _answer(self, frame: Frame) -> Frame:
        if not self._given:
            return self._answers.answer(frame)
        asked, outcome = self._given.popleft()
        if asked != frame:
            raise Diverged
        if isinstance(outcome, AnswerError):
            raise outcome
        return outcome

    @contextmanager
    def measured(self) -> Iterator[Usage]:
        """Have the memory of the calls in the block measured."""
        self._usage = usage = Usage()
        try:
            yield usage
        finally:
            self._usage = None

    def tried(self, fixture: str, sources: Sequence[str], name: str) -> list[Trial]:
        """How the learner's tests do with what `name` stands for in each of the sources.

        Each has a process of its own, a seed that nobody knows, a random place in the order and
        other looks, so that nothing but what it does tells one from another. For a stage each is
        tried once, in the first call that asks for it, whatever becomes of the others: a call with
        fewer of them would tell what they are. Raises AnswerError.
        """
        self.need(fixture)
        chance = random.SystemRandom()
        new = [source for source in dict.fromkeys(sources) if source not in self._trials]
        chance.shuffle(new)
        words = vocabulary_of(new)
        self._seed += 1
        self._trials.update(dict.fromkeys(new, Trial(ended="The grader did not get to it")))
        for source in new:
            seed = chance.getrandbits(32)
            request = self._request(fixture, neutral(source, words, chance), name, seed)
            self._trials[source] = self._trial(request)
        if all(trial.verdict == "unwritten" for trial in self._trials.values()):
            self.not_written = True
            raise SubmissionError("Not written yet")
        self._answered = True
        for source in sources:
            trial = self._trials[source]
            # Tests that do not come to their end are not like those that nobody runs.
            reply = Frame({"value": "ended" if trial.ended else trial.verdict})
            request = self._request(fixture, source, name, self._seed)
            self._exchanges.append(Exchange(request, reply))
        return [self._trials[source] for source in sources]

    def _request(self, fixture: str, source: str, name: str, seed: int) -> Frame:
        target = {"function": fixture}
        return Frame({"op": "try", "target": target, "given": source, "name": name, "seed": seed})

    def _trial(self, request: Frame) -> Trial:
        try:
            return trial_of(self._answers.tried(request).header)
        except (Crash, Timeout) as error:
            return Trial(ended=str(error))
        except WireError as error:
            return Trial(ended=f"Your code's process answered with something else: {error}")

    def fail(self, error: dict[str, Any]) -> Exception:
        """The exception that an error reply describes."""
        if error.get("stub") is True:
            self.not_written = True
        return submission_error(error)


class RemoteSubmission:
    """The `submission` fixture: `submission.f(x)` calls the learner's function `f`."""

    def __init__(self, stage: StageUnderCheck) -> None:
        self._stage = stage

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return self._stage.entry(name)

    def given(self, source: str, name: str, *args: Any, **kwargs: Any) -> RemoteObject:
        """Something of the check's own, made where the learner's code runs, to be handed to it.

        `source` is run there, in a namespace of its own. Of a class of modules `name` the result is
        `name(*args, **kwargs)`, with a module's interface, else the function `name`.
        """
        stage = self._stage
        stage.need("")  # nothing but that there is a learner's file
        caller = Caller(stage.request, _own_fault, _handle_of)
        target = {"given": source, "name": name}
        made = f"{name}({_arguments(args, kwargs)})"
        value = stage.call(caller, name, args, kwargs, code="", target=target)
        if not isinstance(value, Handle):
            raise WrongReturn(f"What the check has given came back as {described(value)}")
        if value.type_name == "function":
            return RemoteObject(value, name)
        return RemoteModule(stage, value, EntryPoint(name, ("any",), is_class=True), made, "")

    def tried(self, fixture: str, sources: Mapping[str, str], name: str) -> dict[str, Trial]:
        """How the learner's tests do with each of several things of the check's own.

        `fixture` is what they take, `name` the class or function in each of the sources that stands
        behind it. Those that are given in one call are tried in random order.
        """
        trials = self._stage.tried(fixture, list(sources.values()), name)
        return dict(zip(sources, trials, strict=True))

    def measured(self) -> AbstractContextManager[Usage]:
        """`with submission.measured() as usage:` says how much memory a call in the block takes.

        `usage.peak` are the most bytes of tensors alive at once that no argument holds.
        """
        return self._stage.measured()

    def held_by(self, module: RemoteModule) -> list[tuple[int, ...]]:
        """The different shapes of the tensors that a module holds, in whatever way."""
        shapes = module.probe("held")
        if not isinstance(shapes, list) or not all(isinstance(shape, tuple) for shape in shapes):
            raise WrongReturn(f"What the module holds cannot be told: {described(shapes)}")
        return shapes


class _Entry:
    """One entry point of the submission."""

    def __init__(self, stage: StageUnderCheck, entry: EntryPoint) -> None:
        self._stage = stage
        self._entry = entry

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        stage, entry = self._stage, self._entry
        stage.need(entry.name)
        caller = Caller(stage.request, stage.fail, _handle_of)
        code = f"{entry.name}.__init__" if entry.is_class else entry.name
        value = stage.call(
            caller, entry.name, args, kwargs, code=code, target={"function": entry.name}
        )
        if not entry.is_class:
            return checked(value, entry, f"{entry.name}(...)")
        if not isinstance(value, Handle):
            advice = "is a `return` missing?" if value is None else "does the class derive from it?"
            raise WrongReturn(
                f"{entry.name}(...) made {described(value)}\n  expected  an nn.Module: {advice}"
            )
        return RemoteModule(stage, value, entry, stage.last_call, f"{entry.name}.forward")


class RemoteObject:
    """Something of the worker that may be an argument; `made` says in messages what it is."""

    def __init__(self, handle: Handle, made: str) -> None:
        self.handle = handle
        self.made = made


class RemoteModule(RemoteObject):
    """An nn.Module of the worker, with the parts of nn.Module's interface that checks use.

    Parameters that are lazy are left out until they have a shape. `code` is the learner's code that
    a call runs, "" if it is not theirs.
    """

    def __init__(
        self, stage: StageUnderCheck, handle: Handle, entry: EntryPoint, made: str, code: str
    ) -> None:
        super().__init__(handle, made)
        self._code = code
        self._stage = stage
        self._entry = entry
        self._caller = Caller(stage.request, stage.fail, _handle_of)
        self._parameters: dict[str, Any] = {}
        self._stale = True
        self._is_lazy = False
        self.training = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module's forward returns; a backward pass reaches inputs and parameters."""
        value = self._stage.call(
            self._caller,
            self.made,
            args,
            kwargs,
            code=self._code,
            target={"object": self.handle.id},
            parameters=self._trained(),
        )
        self._stale = self._stale or self._is_lazy  # the call may have given them their shapes
        return checked(value, self._entry, f"Calling {self._entry.name}(...)")

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Names and local leaf tensors that stand for the parameters and take their gradients."""
        if self._stale:
            self._read_parameters()
        return iter(self._parameters.items())

    def parameters(self) -> Iterator[Any]:
        """The tensors of `named_parameters`."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """Names and values of the buffers."""
        return iter(_named_tensors(self._method("named_buffers"), "named_buffers()"))

    def state_dict(self) -> dict[str, Any]:
        """Copies of the persistent parameters and buffers."""
        return dict(_named_tensors(self._method("state_dict"), "state_dict()"))

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> list[str]:
        """Copy these values into the module's parameters and buffers; the names that it missed."""
        self._stale = True
        keys = self._method("load_state_dict", dict(state), strict=strict)
        missing = keys[0] if isinstance(keys, tuple) and keys else []
        return [str(name) for name in missing] if isinstance(missing, list) else []

    def train(self, mode: bool = True) -> RemoteModule:
        """Switch to training mode."""
        self._mode("train", mode)
        return self

    def eval(self) -> RemoteModule:
        """Switch to evaluation mode."""
        self._mode("eval")
        return self

    def to(self, *args: Any) -> RemoteModule:
        """Move to a device or cast to a dtype."""
        self._method("to", *args)
        self._stale = True
        return self

    def probe(self, name: str) -> Any:
        """What the worker finds when it looks into the module."""
        return self._asked({"object": self.handle.id, "probe": name}, name)

    def _trained(self) -> dict[str, Any]:
        """What gradients may have to reach."""
        torch = sys.modules.get("torch")
        if torch is None or not torch.is_grad_enabled():
            return {}
        return {name: p for name, p in self.named_parameters() if p.requires_grad}

    def _mode(self, method: str, *args: bool) -> None:
        target = {"object": self.handle.id, "method": method}
        self._stage.before_the_next(target, *args)
        self.training = all(args) if args else False

    def _method(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._asked({"object": self.handle.id, "method": name}, name, *args, **kwargs)

    def _asked(self, target: dict[str, Any], name: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._caller.call(target, args, kwargs, is_watched=lambda array: False)
        except WireError as error:
            raise WrongReturn(f"{name}() gave an answer that makes no sense: {error}") from None

    def _read_parameters(self) -> None:
        found = self._method("named_parameters")
        fresh = _named_tensors(found, "named_parameters()")
        self._is_lazy = len(fresh) < len(found)
        known, self._parameters = self._parameters, {}
        for name, tensor in fresh:
            leaf = known.get(name)
            if leaf is None or not tensor.is_floating_point():
                leaf = tensor.detach()
            else:
                leaf.data = tensor.detach()
                leaf.grad = None
            self._parameters[name] = leaf.requires_grad_(leaf.is_floating_point())
        self._stale = False


def checked(value: Any, entry: EntryPoint, call: str) -> Any:
    """`value` if it is of the entry point's type. Raises WrongReturn."""
    if entry.returns == ("any",):
        return value
    if entry.is_tuple:
        wanted = f"a tuple of {len(entry.returns)}"
        if not isinstance(value, tuple) or len(value) != len(entry.returns):
            raise WrongReturn(
                f"{call} returned {described(value)}\n"
                f"  expected  {wanted}: ({', '.join(entry.returns)})"
            )
        parts = zip(value, entry.returns, strict=True)
        for number, (part, kind) in enumerate(parts, start=1):
            if not _is_kind(part, kind):
                raise WrongReturn(
                    f"{call} returned {described(part)} as value {number} of {len(value)}\n"
                    f"  expected  {_KIND_WORDS[kind]}"
                )
        return value
    if not _is_kind(value, entry.returns[0]):
        message = f"{call} returned {described(value)}"
        if value is None:
            message += ": is a `return` missing?"
        raise WrongReturn(f"{message}\n  expected  {_KIND_WORDS[entry.returns[0]]}")
    return value


_KIND_WORDS = {
    "tensor": "a torch.Tensor",
    "array": "a numpy array",
    "number": "a number",
    "any": "any value",
}


def _is_kind(value: Any, kind: str) -> bool:
    if kind == "any":
        return True
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    library = sys.modules.get("torch" if kind == "tensor" else "numpy")
    if library is None:
        return False
    return isinstance(value, library.Tensor if kind == "tensor" else library.ndarray)


def described(value: Any) -> str:
    """What a value is, in a few words."""
    if value is None:
        return "None"
    if isinstance(value, Opaque):
        return safe(value.type_name) + (f" ({safe(value.why)})" if value.why else "")
    if isinstance(value, Handle):
        return f"a module of class {safe(value.type_name)}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    shape = getattr(value, "shape", None)
    if shape is not None:
        library = type(value).__module__.split(".")[0]
        name = "a torch.Tensor" if library == "torch" else "a numpy array"
        return f"{name} of shape {list(shape)}"
    return f"{type(value).__name__} {safe(repr(value)[:60])}"


def _handle_of(value: Any) -> Handle | None:
    return value.handle if isinstance(value, RemoteObject) else None


def _own_fault(error: dict[str, Any]) -> Exception:
    return RuntimeError(f"what the check has given does not work: {submission_error(error)}")


def _named_tensors(value: Any, what: str) -> list[tuple[str, Any]]:
    """Pairs of names and tensors, without those that have no values yet. Raises WrongReturn."""
    import torch

    if not isinstance(value, (list, tuple, dict)):
        raise WrongReturn(f"{what} returned {described(value)}, not names and tensors")
    every = value.items() if isinstance(value, dict) else value
    named = [item for item in every if not _is_lazy(item)]
    for item in named:
        if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[1], torch.Tensor):
            raise WrongReturn(f"{what} holds {described(item)}, not a name and a tensor")
        if not isinstance(item[0], str):
            raise WrongReturn(f"{what} holds a tensor whose name is {described(item[0])}")
    return named


def _is_lazy(item: Any) -> bool:
    is_pair = isinstance(item, tuple) and len(item) == 2
    return is_pair and isinstance(item[1], Opaque) and item[1].why == LAZY


def _arguments(args: Iterable[Any], kwargs: Mapping[str, Any]) -> str:
    """The arguments of a call as a learner may read them: tensors by their axes."""
    positional = [_argument(value) for value in args]
    return ", ".join(positional + [f"{name}={_argument(value)}" for name, value in kwargs.items()])


def _argument(value: Any) -> str:
    if isinstance(value, RemoteObject):
        return value.made
    shape = getattr(value, "shape", None)
    if shape is None:
        return repr(value) if isinstance(value, (int, float, str, type(None))) else described(value)
    axes = getattr(value, "axes", ())
    if len(axes) != len(shape):
        sizes = ", ".join(str(size) for size in shape)
    else:
        sizes = ", ".join(f"{axis}={size}" for axis, size in zip(axes, shape, strict=True))
    dtype = str(value.dtype).removeprefix("torch.")
    return f"[{sizes}]" if dtype == "float32" else f"[{sizes}] {dtype}"
