"""Who answers a check's requests: the learner's code in a worker, or a function of our own here."""

from __future__ import annotations

import difflib
import re
import signal
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from grader.run.facts import ForbiddenCall
from grader.run.frames import frames_told
from grader.run.solutions import References
from grader.run.worker.bench import Bench
from grader.run.worker.wire import Closed, DeadlineError, Frame, WireError
from grader.run.workers import End, Interpreter, Worker, how_it_ended
from grader.types.course import Course, Limits, Stage
from grader.types.submission import Submission
from grader.types.text import safe

AT_IMPORT = "(while it was imported)"  # ends the message of a time-out or crash that came then
_SHORTEST_PATIENCE = 0.5  # seconds; after time-outs the limit of a call shrinks to no less
# What a lock may report as missing; anything else that a worker says of it is not believed.
LAYERS = (
    *("landlock", "seccomp", "privileges", "memory", "processor time"),
    *("file size", "open files", "core dumps", "processes", "disk space", "threads"),
)
_PRINT_CAP = 4000
_REPLIES_CAP = 256 << 20  # bytes of all replies of one stage: who sends more wants to slow us
_MESSAGE_CAP = 2000
_GRACE = 0.2  # seconds for a worker that closed its socket to end, so that we learn how
_MIXED_IN = (
    *(ValueError, TypeError, RuntimeError, IndexError, KeyError, AttributeError, NameError),
    *(AssertionError, NotImplementedError, ZeroDivisionError, ArithmeticError, LookupError),
)


class Cancelled(Exception):
    """Somebody has called `WorkerAnswers.abort`: the verdict is not wanted any more."""


class AnswerError(Exception):
    """The learner's code gave no answer that a check could look at."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""  # a KeyError's own would quote it


class SubmissionError(AnswerError):
    """An exception of the learner's code, raised in the check.

    It is an instance of the builtin exception that was raised too, so `pytest.raises(ValueError)`
    and the like work. `not_written` marks the NotImplementedError of an untouched stub.
    """

    not_written = False


class WrongReturn(AnswerError):
    """The learner's code gave back something that is not of the entry point's type."""


class LoadError(AnswerError):
    """The stage's code cannot be imported, or does not define what the stage is about."""


class Crash(AnswerError):
    """The process that ran the learner's code ended."""


class _Unsent(Crash):
    """It had ended before the request could be sent."""


class Timeout(AnswerError):
    """The learner's code did not answer in time."""


class Stopped(BaseException):
    """Code of our own has not come to an end in time."""


class Answers(Protocol):
    """Answers the requests of one stage's checks."""

    missing_layers: tuple[str, ...]
    forbidden: tuple[ForbiddenCall, ...]

    def begin(self) -> None:
        """Start a case: nothing is left of the one before."""

    def need(self, name: str) -> None:
        """Have the entry point `name` at hand. Raises AnswerError if there is none."""

    def answer(self, request: Frame, known: Container[bytes] = ()) -> Frame:
        """The reply to one request. Raises AnswerError.

        One that is `known` by its digest need not be read.
        """

    def tried(self, request: Frame) -> Frame:
        """The reply to a request to run the learner's tests, from a process that does no more.

        Raises AnswerError.
        """

    def close(self) -> str:
        """Have done; returns what the answering code printed."""


def answered_here(bench: Bench, request: Frame) -> Frame:
    """A bench's reply in this process, whose user may press Ctrl-C. Raises KeyboardInterrupt."""
    reply = bench.answer(request)
    error = reply.header.get("error")
    if error is not None and error.get("type") == "KeyboardInterrupt":
        raise KeyboardInterrupt  # our own functions raise none
    return reply


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raises Stopped if the block's Python code takes longer, where there are such timers.

    Within another such block the other's time goes on.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() != threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise Stopped(f"has not come to an end in {seconds:g} s")

    began = time.monotonic()
    left, again = signal.setitimer(signal.ITIMER_REAL, 0)
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)  # again if the code goes on
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            left = max(left - (time.monotonic() - began), 0.001)
            signal.setitimer(signal.ITIMER_REAL, left, again)


class LocalAnswers:
    """Functions of our own, in this process: the solutions and the known misconceptions.

    With `limits` a call that does not end is stopped and no other is begun; `hangs` says so.
    """

    missing_layers: tuple[str, ...] = ()
    forbidden: tuple[ForbiddenCall, ...] = ()
    hangs = ""

    def __init__(self, find: Callable[[str], Any], limits: Limits | None = None) -> None:
        self._bench = Bench(find)
        self._limits = limits

    def begin(self) -> None:
        """Forget every object and call."""
        self._bench.reset()

    def need(self, name: str) -> None:
        """They are all here."""

    def answer(self, request: Frame, known: Container[bytes] = ()) -> Frame:
        """The reply to one request, with its digest, as that of a worker has.

        Raises KeyboardInterrupt, and Timeout for a call that hangs and all that follow.
        """
        if self._limits is None:
            return answered_here(self._bench, request).sealed()
        seconds = self._limits.load_seconds  # that of a call would be short beside other work
        if not self.hangs:
            with suppress(Stopped), stopped_after(seconds):
                reply = answered_here(self._bench, request)
                if reply.header.get("error", {}).get("type") != Stopped.__name__:
                    return reply.sealed()
            target = request.header.get("target", {}).get("function", "a call")
            self.hangs = f"hangs: {target} is stopped after {seconds:g} s"
        raise Timeout(self.hangs)

    def tried(self, request: Frame) -> Frame:
        """The reply to one request. Raises KeyboardInterrupt and Timeout."""
        return self.answer(request)

    def close(self) -> str:
        """Nothing is left behind."""
        return ""


@dataclass(frozen=True)
class Loaded:
    """A worker in which all of a submission was run, and what it said of that and printed."""

    worker: Worker
    reply: Mapping[str, Any]
    printed: str


class WorkerAnswers:
    """The learner's code for one stage, in a worker that is started when it is first needed.

    With `answered`, the functions of those earlier stages are the course's own, which `references`
    answers for. A notebook is run as a whole, whichever stage is asked for, as in a kernel: so with
    `keeps` its worker is not ended by `close` but is `loaded` then, for the next stage's answers.
    Its import may take `load_seconds`, or what the course says; with `only_definitions` nothing
    else of its cells is run.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        course: Course,
        stage: Stage,
        submission: Submission,
        *,
        answered: Sequence[Stage] = (),
        references: References | None = None,
        keeps: bool = False,
        loaded: Loaded | None = None,
        load_seconds: float | None = None,
        only_definitions: bool = False,
    ) -> None:
        self._interpreter = interpreter
        self._course = course
        self._load_seconds = load_seconds or course.limits.load_seconds
        self._only_definitions = only_definitions
        self._stage = stage
        self._submission = submission
        self._answered = {
            earlier.slug: [entry.name for entry in earlier.entry_points] for earlier in answered
        }
        self._references = references
        self._patience = course.limits.call_seconds
        self._patience_with_tests = course.limits.load_seconds
        self._spent = 0.0
        self._received = 0
        self._worker: Worker | None = None
        self._testing: Worker | None = None
        self._load_error: AnswerError | None = None
        self._absent: dict[str, AnswerError] = {}
        self._printed = ""
        self._aborted = False
        self._is_fresh = True
        self._keeps = keeps
        self._reply: Mapping[str, Any] | None = None
        self._printed_by_import = ""
        self.loaded = loaded
        self.missing_layers: tuple[str, ...] = ()
        self.forbidden: tuple[ForbiddenCall, ...] = ()

    @property
    def died_at_import(self) -> bool:
        """Whether the learner's code did not get to the end of its import."""
        return isinstance(self._load_error, (Timeout, Crash))

    @property
    def has_no_end(self) -> bool:
        """Whether the learner's code was stopped while it was imported."""
        return isinstance(self._load_error, Timeout)

    @property
    def lacks(self) -> bool:
        """Whether there is not all that the stage asks for."""
        return self._load_error is not None or bool(self._absent)

    def abort(self) -> None:
        """From another thread: let the call that is under way end, and no case begin."""
        self._aborted = True
        for worker in (self._worker, self._testing):
            if worker is not None:
                worker.channel.interrupt()

    def begin(self) -> None:
        """Start a case, in a new worker if the one before has died. Raises Cancelled."""
        if self._aborted:
            raise Cancelled
        if self._references is not None:
            self._references.begin()
        self._is_fresh = False  # the next request says that it is a case's first
        self._ensure_worker()

    def close(self) -> str:
        """End or keep the worker; returns what the learner's code printed."""
        if self._worker is not None:
            if self._keeps and self._reply is not None and not self._aborted:
                self.loaded = Loaded(self._worker, self._reply, self._printed_by_import)
            else:
                self._worker.release()
            self._worker = None
        printed = safe(self._printed)
        more = "\n... and more" if len(printed) > _PRINT_CAP else ""
        return printed[:_PRINT_CAP].strip() + more

    def need(self, name: str) -> None:
        """Have a worker that holds the entry point `name`. Raises AnswerError if there is none."""
        if self._load_error is not None:
            raise self._load_error
        if name in self._absent:
            raise self._absent[name]

    def answer(self, request: Frame, known: Container[bytes] = ()) -> Frame:
        """The worker's reply to one request. Raises AnswerError."""
        if self._is_fresh:
            return self._send(request, self._patience, known)
        self._is_fresh = True
        begins = {"begin": True, "forbidden": list(self._stage.forbidden)}
        first = Frame({**request.header, **begins}, request.data)
        try:
            return self._send(first, self._patience, known)
        except _Unsent:  # the worker died between two checks: start another
            self._ensure_worker()
            return self._send(first, self._patience, known)

    def tried(self, request: Frame) -> Frame:
        """The reply of a worker that was forked for this request and imports the stage for it."""
        if self._aborted:
            raise Cancelled
        if self._worker is not None and not self._interpreter.forks:
            self._drop()  # there is one process at a time
        start = time.monotonic()
        left = self._course.limits.stage_seconds - self._spent
        if left <= 0:
            raise self._used_up()
        worker = self._testing = self._interpreter.start(tests=True)
        try:
            deadline = start + min(left, self._patience_with_tests)
            for frame in (Frame(self._load_header()), request):
                worker.channel.send(frame, deadline)
                reply = worker.channel.receive(deadline)
                self._received += reply.size
                if self._received > _REPLIES_CAP:
                    raise WireError("all its answers together are too large")
                if "error" in reply.header:
                    break  # it cannot even be imported, this time
        except DeadlineError:
            raise Timeout(self._no_end(left)) from None
        except Closed:
            if self._aborted:
                raise Cancelled from None
            raise Crash(how_it_ended(worker.end(_GRACE))) from None
        except WireError as error:
            raise Crash(f"Your code's process answered with something else: {error}") from None
        finally:
            self._testing = None
            if worker.is_there:
                worker.end()
            self._spent += time.monotonic() - start
        return reply

    def _no_end(self, left: float) -> str:
        """Tests were stopped: with what limit, when `left` was left to the stage, and why that."""
        limits, seconds = self._course.limits, self._patience_with_tests
        self._patience_with_tests = max(_SHORTEST_PATIENCE, seconds / 2)
        if left < seconds:
            why = f", all that was left of this stage's {limits.stage_seconds:g}"
            return _too_long("No end", left, why)
        return _too_long("No end", seconds, _halved(seconds, limits.load_seconds))

    def _ensure_worker(self) -> None:
        try:
            if self._worker is None:
                self._load()
        except AnswerError:
            pass  # the check that needs it is told

    def _load(self) -> None:
        """Start a worker and import the stage in it, once: a broken import is not tried again."""
        if self._load_error is not None:
            raise self._load_error
        stage, submission = self._stage, self._submission
        if submission.is_folder and stage.file_name not in submission.files:
            self._load_error = LoadError(_missing_file(stage, submission))
            raise self._load_error
        if self.loaded is not None:
            before, self.loaded = self.loaded, None
            self._worker = before.worker
            self._take(before.reply, before.printed)
            return
        self._worker = self._interpreter.start()
        try:
            whole = self._course.limits.load_seconds
            reply = self._send(Frame(self._load_header()), self._load_seconds, whole=whole).header
        except Timeout as error:
            self._load_error = Timeout(f"{error} {AT_IMPORT}")
            raise self._load_error from None
        except Crash as error:
            self._load_error = Crash(f"{error} {AT_IMPORT}")
            raise self._load_error from None
        self._take(reply, self._printed)

    def _load_header(self) -> dict[str, Any]:
        """The request to import the stage's code."""
        stage, submission = self._stage, self._submission
        return {
            "op": "load",
            "files": {name: data.decode("latin-1") for name, data in submission.files.items()},
            "script": submission.script,
            "cells": None if submission.cells is None else list(submission.cells),
            "only_definitions": self._only_definitions,
            "module": stage.slug,
            "aliases": [stage.slug for stage in self._course.stages],
            "names": [entry.name for each in self._course.stages for entry in each.entry_points],
            "answered": self._answered,
            # A worker that is kept goes on to other stages.
            "forbidden": [
                name
                for stage in (self._course.stages if self._keeps else [self._stage])
                for name in stage.forbidden
            ],
            "fixture": stage.fixture,
        }

    def _take(self, reply: Mapping[str, Any], printed: str) -> None:
        """Learn from a worker's reply what was defined. Raises AnswerError."""
        stage, submission = self._stage, self._submission
        self._printed = self._printed_by_import = printed
        claimed = _strings(reply.get("missing_layers"))
        self.missing_layers = tuple(layer for layer in LAYERS if layer in claimed)
        if "error" in reply:
            self._load_error = _import_error(reply["error"], stage, submission)
            raise self._load_error
        self._reply = reply
        defined = _strings(reply.get("defined"))
        self._absent = {
            entry.name: LoadError(_missing_name(entry.name, reply, stage, submission))
            for entry in stage.entry_points
            if not entry.is_fixture and entry.name not in defined
        }

    def _send(
        self,
        frame: Frame,
        seconds: float,
        known: Container[bytes] = (),
        *,
        whole: float | None = None,
    ) -> Frame:
        """One request and its reply; whatever ends the worker ends up as an AnswerError.

        It may take so many seconds, of the `whole` limit: that of a call, if nothing is said.
        """
        if self._worker is None:
            raise Crash("The process that ran your code is gone")
        if self._spent > self._course.limits.stage_seconds:
            raise self._used_up()
        start = time.monotonic()
        try:
            return self._sent(frame, start + seconds, known)
        except Timeout:
            whole = whole or self._course.limits.call_seconds
            self._patience = max(_SHORTEST_PATIENCE, self._patience / 2)
            raise Timeout(_too_long("No answer", seconds, _halved(seconds, whole))) from None
        finally:
            self._spent += time.monotonic() - start

    def _sent(self, frame: Frame, deadline: float, known: Container[bytes]) -> Frame:
        assert self._worker is not None
        channel = self._worker.channel
        try:
            try:
                channel.send(frame, deadline)
            except Closed:
                grace = 0.0 if self._aborted else _GRACE
                raise _Unsent(how_it_ended(self._drop(grace))) from None
            while True:
                reply = channel.receive(deadline, known)
                self._received += reply.size
                if self._received > _REPLIES_CAP:
                    raise WireError("all its answers together are too large")
                if not reply.aside.get("ask"):
                    break
                if self._references is None:
                    raise WireError("the worker asks, and nobody is to answer")
                channel.send(self._references.answer(reply), deadline)
        except DeadlineError:
            self._drop()
            raise Timeout from None
        except Closed:
            grace = 0.0 if self._aborted else _GRACE
            raise Crash(how_it_ended(self._drop(grace))) from None
        except WireError as error:
            self._drop()
            raise Crash(f"Your code's process answered with something else: {error}") from None
        if len(self._printed) <= _PRINT_CAP:
            self._printed += str(reply.aside.get("printed", ""))[: _PRINT_CAP + 1]
        if "forbidden" in reply.aside:
            self._learn_of(reply.aside["forbidden"])
        return reply

    def _used_up(self) -> Timeout:
        return Timeout(
            f"This stage has used up its {self._course.limits.stage_seconds:g} seconds: a busy "
            "machine (try again) or an endless loop?"
        )

    def _learn_of(self, calls: Any) -> None:
        """Take over what a reply tells of forbidden calls, each name once."""
        for call in calls if isinstance(calls, list) else []:
            name = call.get("name") if isinstance(call, dict) else None
            known = [each.name for each in self.forbidden]
            if name in self._stage.forbidden and name not in known:
                self.forbidden += (ForbiddenCall(name, frames_told(call)),)

    def _drop(self, grace: float = 0.0) -> End:
        worker, self._worker = self._worker, None
        return worker.end(grace) if worker is not None else None


def _too_long(what: str, seconds: float, why: str) -> str:
    """What did not come in so many seconds, which may not be the learner's fault."""
    count = f"{round(seconds, 2):g} second" + ("" if seconds == 1 else "s")
    return f"{what} in {count}{why}: a busy machine (try again) or an endless loop?"


def _halved(seconds: float, limit: float) -> str:
    """Why it was no longer."""
    return f", the limit of {limit:g} halved each time" if seconds < limit else ""


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def submission_error(error: dict[str, Any]) -> SubmissionError:
    """The exception that stands for the one that an error reply describes."""
    bases = _strings(error.get("bases"))
    mixed = next((kind for base in bases for kind in _MIXED_IN if kind.__name__ == base), None)
    kind: type[SubmissionError] = SubmissionError
    if mixed is not None:
        kind = type(mixed.__name__, (SubmissionError, mixed), {})
    failure = kind(_told(error))
    failure.not_written = error.get("stub") is True
    return failure


def _told(error: dict[str, Any]) -> str:
    """An exception of the learner's code in words: what, then the learner's own frames."""
    name = safe(str(error.get("type", "Exception"))[:100])
    message = safe(str(error.get("message", ""))[:_MESSAGE_CAP]).strip()
    if name == "SystemExit":
        message = "your code called sys.exit() or quit(); return a value instead"
    first = f"{name}: {message}" if message else name
    return first + frames_told(error)


def _import_error(error: Any, stage: Stage, submission: Submission) -> AnswerError:
    error = error if isinstance(error, dict) else {}
    return LoadError(f"{_where(stage, submission)} cannot be imported. {_told(error)}")


def _where(stage: Stage, submission: Submission) -> str:
    """What holds the stage's code."""
    return stage.file_name if submission.is_folder else submission.script or "the notebook"


def _missing_file(stage: Stage, submission: Submission) -> str:
    close = difflib.get_close_matches(stage.file_name, list(submission.files), n=1, cutoff=0.7)
    hint = f"; did you name it {safe(close[0])}?" if close else ""
    return f"There is no file {stage.file_name}{hint}"


def _missing_name(name: str, reply: Mapping[str, Any], stage: Stage, submission: Submission) -> str:
    cells = reply.get("cells")
    cells = [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else []
    defines = re.compile(rf"\b(def|class) {name}\b|^[ \t]*{name} *[:=]", re.MULTILINE)
    for cell in cells:
        if defines.search(str(cell.get("source"))):
            return f"{name} is not defined: a cell of the notebook fails. {_told(cell)}"
    where = _where(stage, submission)
    others = [other[:80] for other in _strings(reply.get("others"))[:200]]
    if name in others:
        return f"{name} in {where} is neither a function nor a class"
    close = difflib.get_close_matches(name, others, n=1, cutoff=0.7)
    hint = f"; did you mean {safe(close[0])}?" if close else ""
    fails = f"\n  And a cell of it fails: {_told(cells[0])}" if cells else ""
    return f"{where} does not define {name}{hint}{fails}"
