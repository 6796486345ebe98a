"""Requests to one worker and its replies; however the worker ends, an AnswerError reports it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from grader.run.ahead import Ahead, Script
from grader.run.allowance import Allowance, Due, Patience, Waited
from grader.run.failures import AnswerError, Crash, Timeout, Unsent
from grader.run.solutions import References
from grader.run.worker.wire import Closed, Deadline, DeadlineError, Frame, WireError
from grader.run.workers import GRACE, End, Memory, Worker, how_it_ended

GONE = "The process that ran your code is gone"


class Conversation:
    """Sends requests to one worker within an allowance; `references` answers its own requests.

    `first` is sent beside the first request of each case. What the `script` expects is sent ahead.
    `unasked` is called with each reply that no case asked for, because the code did run.
    """

    def __init__(
        self,
        worker: Worker,
        allowance: Allowance,
        references: References | None = None,
        first: Mapping[str, Any] | None = None,
        script: Script | None = None,
        unasked: Callable[[Frame], None] = lambda reply: None,
    ) -> None:
        self.worker: Worker | None = worker
        self.begins = True  # whether the next request is the first of its case
        self._first = first or {}
        # A worker that asks something itself must find the answer next, and no other request.
        self._ahead = Ahead(script or Script()) if references is None else Ahead(Script())
        self._waited = Waited(worker.waited_seconds)
        self._allowance = allowance
        self._references = references
        self._unasked = unasked
        self._interrupted = False

    def begin(self, case: str, patience: Patience) -> None:
        """Start a case; a worker that cannot be brought to its start is ended."""
        self.begins = True
        self._throw_away(self._ahead.begin(case), patience)

    def give_up(self, patience: Patience) -> None:
        """Throw away the replies to all that was sent ahead, as `begin` does."""
        self._throw_away(self._ahead.give_up(), patience)

    def _throw_away(self, replies: Iterator[None], patience: Patience) -> None:
        with suppress(AnswerError):  # the worker is ended then
            for _ in replies:
                self._unasked(self._received(patience, is_kept=False))

    def ask(self, request: Frame, patience: Patience, known: Container[bytes] = ()) -> Frame:
        """The reply to a request; if its digest is in `known`, its header stays unparsed.

        Raises Timeout and Crash, and Unsent if the worker had ended before the request was sent.
        Raises Diverged as `Ahead.has_sent` does.
        """
        is_sent = self._ahead.has_sent(request)
        frames = [] if is_sent else [request.beside(self._first) if self.begins else request]
        for frame, is_first in self._ahead.more():
            frames.append(frame.beside(self._first) if is_first else frame)
        return self._received(patience, frames, known, was_early=is_sent)

    def _received(
        self,
        patience: Patience,
        frames: Sequence[Frame] = (),
        known: Container[bytes] = (),
        *,
        was_early: bool = True,
        is_kept: bool = True,
    ) -> Frame:
        """The next reply, after `frames` were sent; raises what `ask` does."""
        if self.worker is None:
            raise Crash(GONE)
        allowance, budget, seconds = self._allowance, self._allowance.budget, patience.seconds
        left = allowance.expect_some()
        self.worker.allow(left)
        due = Due(seconds, left, self._waited)
        try:
            return self.exchange(frames, due, known, was_early=was_early, is_kept=is_kept)
        except DeadlineError:
            self.end()
            late = patience.end("No answer")
            raise (Timeout(budget.over) if left < seconds or budget.is_spent else late) from None
        finally:
            allowance.spend(due.used)

    def exchange(
        self,
        frames: Sequence[Frame],
        deadline: Deadline,
        known: Container[bytes] = (),
        *,
        was_early: bool = False,
        is_kept: bool = True,
    ) -> Frame:
        """The next reply, after `frames` were sent. Raises DeadlineError, Crash and Unsent.

        The worker still runs after a DeadlineError. `was_early` if the request of this reply was
        sent before its turn: if the worker has ended since, it may be sent to another one.
        """
        assert self.worker is not None
        channel, is_sent = self.worker.channel, was_early and not self.begins
        try:
            if frames:
                channel.send_all(frames, deadline)
                is_sent = is_sent or not was_early
            while True:
                reply = channel.receive(deadline, known)
                if is_kept:
                    self._allowance.count(reply)
                if not reply.aside.get("ask"):
                    return reply
                if self._references is None:
                    raise WireError("the worker sent a question, but nothing answers it")
                channel.send(self._references.answer(reply), deadline)
        except Closed:
            how = how_it_ended(self.end(0.0 if self._interrupted else GRACE))
            raise (Crash(how) if is_sent else Unsent(how)) from None
        except WireError as error:
            self.end()
            raise Crash(f"Your code's process sent an invalid answer: {error}") from None

    @property
    def memory(self) -> Memory | None:
        """The worker's memory as the kernel reports it."""
        return None if self.worker is None else self.worker.memory()

    def usage_since(self, born: Memory) -> Frame:
        """The worker's memory since `born`, as a reply. Raises Crash if the worker is gone."""
        now = self.memory
        if now is None:
            raise Crash(GONE)
        used = {"peak": now.peak - born.size, "held": now.size - born.size}
        return Frame({"value": used}).sealed()

    def interrupt(self) -> None:
        """End the running request. Called from another thread."""
        self._interrupted = True
        if (worker := self.worker) is not None:
            worker.channel.interrupt()

    def end(self, grace: float = 0.0) -> End:
        """End the worker, if it still runs; returns how it ended."""
        worker, self.worker = self.worker, None
        return None if worker is None else worker.end(grace)
