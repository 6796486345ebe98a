"""One stage of a submission as its checks use it: sends requests, receives replies, records all."""

from __future__ import annotations

import hashlib
import random
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from grader.run.answers import Answers
from grader.run.facts import CaseFact, Exchange, ForbiddenCall
from grader.run.failures import (
    AnswerError,
    Crash,
    Diverged,
    SubmissionError,
    Timeout,
    WrongReturn,
    submission_error,
)
from grader.run.transcripts import Key, Transcripts
from grader.run.trials import Trial, neutral, trial_of, vocabulary_of
from grader.run.value_words import arguments, described, handle_of
from grader.run.worker.bridge import Caller, ChangedArgument
from grader.run.worker.wire import Frame, WireError
from grader.types.course import Stage

_SEEDS = 1 << 31  # number of possible first seeds for a case's calls
_RECORD_CAP = 32 << 20  # bytes that one stage's record may take


@dataclass
class Usage:
    """Bytes of memory: the most that a block of calls took at once, and what it held at its end."""

    peak: int = 0
    held: int = 0


@dataclass
class CaseRecord:
    """What has happened in one case of a check; `seed` is the one for its next calls.

    `last_call` and `last_target` are the last call of the learner's code, in words and by name. It
    `has_lacked` something if an entry point or an answer was missing. The worker `has_replied`; it
    `has_answered` if that was not only about what the check gave. `before` holds method calls
    to send with the next request, `given` the replies that are known before their requests.
    """

    seed: int = 0
    exchanges: list[Exchange] = field(default_factory=list)
    last_call: str = ""
    last_target: str = ""
    not_written: bool = False
    has_lacked: bool = False
    has_replied: bool = False
    has_answered: bool = False
    before: list[dict[str, Any]] = field(default_factory=list)
    given: deque[tuple[Frame, Frame | AnswerError]] = field(default_factory=deque)
    block: int = 0  # the number of the block being measured, 0 if there is none
    blocks: int = 0

    def next_seed(self) -> int:
        """The seed of the next call."""
        self.seed += 1
        return self.seed


@dataclass(eq=False)
class StageUnderCheck:
    """One stage of a submission as its checks use it; `case` is the record of the running case.

    `tell` is called after each trial of the learner's tests with how many are done, of how many.
    """

    stage: Stage
    _answers: Answers
    _tell: Callable[[int, int], None] = lambda done, total: None

    def __post_init__(self) -> None:
        self._recorded = 0
        self._trials: dict[str, Trial] = {}
        self.case = CaseRecord()
        self.caller = Caller(self.request, self.fail, handle_of)
        # Which arguments to change here when a call changed them there; all if no check compares.
        self.is_watched: Callable[[Any], bool] = lambda array: True

    def begin(self, seed: int) -> None:
        """Start a case: forget the previous one, and derive every call's seed from `seed`."""
        # The worker gets this seed, and must not learn the one that the check's inputs come from.
        drawn = hashlib.sha256(f"call:{seed}".encode()).digest()
        self.case = CaseRecord(int.from_bytes(drawn, "big") % _SEEDS)
        self._answers.begin()

    def follow(self, transcripts: Transcripts, key: Key) -> CaseFact | None:
        """The fact on the current case, if it is known for the answers that come; None otherwise.

        If it is not, the check that runs next first gets these answers.
        """
        try:
            fact = transcripts.follow(key, self._put)
        except AnswerError:
            return None  # the check will meet the same error
        if fact is not None:
            self.case.given.clear()
        return fact

    def _put(self, request: Frame, known: Container[bytes]) -> Frame:
        name = request.target.get("function")
        if name is not None:
            self._answers.need(name)
        try:
            reply = self._answers.answer(request, known)
        except AnswerError as error:
            self.case.given.append((request, error))
            raise
        self.case.given.append((request, reply))
        return reply

    def end(self) -> tuple[Exchange, ...]:
        """End a case; returns the requests and replies.

        Returns none once the stage's record is full.
        """
        return tuple(self.case.exchanges) if self._recorded <= _RECORD_CAP else ()

    @property
    def over(self) -> str:
        """Why no other case may start, "" if one may."""
        return self._answers.over

    @property
    def forbidden(self) -> tuple[ForbiddenCall, ...]:
        """The calls of forbidden functions that were noticed in the learner's code."""
        return self._answers.forbidden

    def close(self) -> str:
        """End the stage; returns what the learner's code printed."""
        return self._answers.close()

    def call(
        self,
        target: dict[str, Any],
        name: str,
        args: Any,
        kwargs: Any,
        *,
        code: str,
        seeded: bool = True,
        parameters: Mapping[str, Any] | None = None,
        caller: Caller | None = None,
    ) -> Any:
        """One call by a check, with the next seed unless not `seeded`; messages call it `name`.

        `code` is the function or "Class.method" of the learner's that answers. If it is "", the
        code is not theirs, and no message mentions the call.
        """
        if code:
            self.case.last_target = code
            self.case.last_call = f"{name}({arguments(args, kwargs)})"
        how: dict[str, Any] = {"parameters": parameters, "is_watched": self.is_watched}
        seed = self.case.next_seed() if seeded else None
        try:
            return (caller or self.caller).call(target, args, kwargs, seed=seed, **how)
        except ChangedArgument as error:
            raise WrongReturn(f"{name}(...) {error}") from None
        except WireError as error:
            raise WrongReturn(f"{name}(...) gave an answer that makes no sense: {error}") from None

    def need(self, name: str) -> None:
        """Make sure that the entry point exists. Raises AnswerError."""
        with self._noticing_lacks():
            self._answers.need(name)

    @contextmanager
    def _noticing_lacks(self) -> Iterator[None]:
        try:
            yield
        except AnswerError:
            self.case.has_lacked = True
            raise

    def before_the_next(self, target: dict[str, Any], *args: Any) -> None:
        """Send a method call together with the next request, which saves a round trip.

        Its result is not needed; its exception becomes the next request's.
        """
        self.case.before.append({"target": target, "args": list(args)})

    def request(self, frame: Frame) -> Frame:
        """Send one request of a check and return the reply. Raises AnswerError."""
        if self.case.before:
            frame = Frame({**frame.header, "before": self.case.before}, frame.data)
            self.case.before = []
        if self.case.block:
            frame = Frame({**frame.header, "measured": self.case.block}, frame.data)
        with self._noticing_lacks():
            reply = self._answer(frame)
        self.case.has_replied = True
        if "given" not in frame.target:
            self.case.has_answered = True
        self._recorded += len(frame.data) + reply.size
        if self._recorded <= _RECORD_CAP:
            self.case.exchanges.append(Exchange(frame, reply))
        return reply

    def _answer(self, frame: Frame) -> Frame:
        if not self.case.given:
            return self._answers.answer(frame)
        asked, outcome = self.case.given.popleft()
        if asked != frame:
            raise Diverged
        if isinstance(outcome, AnswerError):
            raise outcome
        return outcome

    @contextmanager
    def measured(self) -> Iterator[Usage]:
        """Measure the memory of the calls in the block, which a separate process answers."""
        usage = Usage()
        self.case.blocks += 1
        self.case.block = self.case.blocks
        try:
            yield usage
            reported = self.request(Frame({"op": "usage"})).header.get("value")
        finally:
            self.case.block = 0
        if not isinstance(reported, dict) or not all(type(n) is int for n in reported.values()):
            raise WrongReturn(
                f"The memory of these calls is unknown: the worker reported {described(reported)}"
            )
        usage.peak, usage.held = reported.get("peak", 0), reported.get("held", 0)

    def tried(self, fixture: str, sources: Sequence[str], name: str, whole: bool) -> list[Trial]:
        """How the learner's tests judge what `name` is in each of the sources.

        Each source has a process of its own, a secret seed, a random place in the order and a
        disguise, so that only its behaviour tells it from the others. Each is tried once for a
        stage, in the first call that asks for it, whatever the results of the others: a call with
        fewer sources would reveal what they are. Raises AnswerError.
        """
        self.need(fixture)
        chance = random.SystemRandom()
        new = [source for source in dict.fromkeys(sources) if source not in self._trials]
        chance.shuffle(new)
        words = vocabulary_of(new)
        seed_of_call = self.case.next_seed()
        self._trials.update(dict.fromkeys(new, Trial(ended="The grader did not get to it")))
        requests = [
            _request(fixture, neutral(source, words, chance), name, chance.getrandbits(32), whole)
            for source in new
        ]
        trials = self._answers.side_by_side(self._trial, requests)
        for done, (source, trial) in enumerate(zip(new, trials, strict=True), start=1):
            self._trials[source] = trial
            self._tell(done, len(new))
        if all(trial.verdict == "unwritten" for trial in self._trials.values()):
            self.case.not_written = True
            raise SubmissionError("Not written yet")
        self.case.has_answered = True
        for source in sources:
            trial = self._trials[source]
            # Tests that time out are recorded differently from those that were never run.
            reply = Frame({"value": "ended" if trial.ended else trial.verdict})
            request = _request(fixture, source, name, seed_of_call, whole)
            self.case.exchanges.append(Exchange(request, reply))
        return [self._trials[source] for source in sources]

    def _trial(self, request: Frame) -> Trial:
        try:
            return trial_of(self._answers.tried(request).header)
        except (Crash, Timeout) as error:
            return Trial(ended=str(error))
        except WireError as error:
            return Trial(ended=f"Your code's process sent an invalid answer: {error}")

    def fail(self, error: dict[str, Any]) -> Exception:
        """The exception that an error reply describes."""
        if error.get("stub") is True:
            self.case.not_written = True
        return submission_error(error)


def _request(fixture: str, source: str, name: str, seed: int, whole: bool) -> Frame:
    """The request to run the learner's tests."""
    how = {"given": source, "name": name, "seed": seed, "whole": whole}
    return Frame({"op": "try", "target": {"function": fixture}, **how})
