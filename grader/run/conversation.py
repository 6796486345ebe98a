"""Requests to one worker and its replies; however the worker ends, an AnswerError reports it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from grader.run.allowance import Allowance, Due, Patience, Waited
from grader.run.failures import Crash, Timeout, Unsent
from grader.run.solutions import References
from grader.run.worker.wire import Closed, Deadline, DeadlineError, Frame, WireError
from grader.run.workers import GRACE, End, Memory, Worker, how_it_ended

GONE = "The process that ran your code is gone"


class Conversation:
    """Sends requests to one worker within an allowance; `references` answers its own requests.

    `first` is sent beside the first request of each case, which the next one is if it `begins`.
    """

    def __init__(
        self,
        worker: Worker,
        allowance: Allowance,
        references: References | None = None,
        first: Mapping[str, Any] | None = None,
    ) -> None:
        self.worker: Worker | None = worker
        self.begins = True
        self._first = first or {}
        self._waited = Waited(worker.waited_seconds)
        self._allowance = allowance
        self._references = references
        self._interrupted = False

    def ask(self, request: Frame, patience: Patience, known: Container[bytes] = ()) -> Frame:
        """The reply to a request; if its digest is in `known`, its header stays unparsed.

        Raises Timeout and Crash, and Unsent if the worker had ended before the request was sent.
        """
        if self.worker is None:
            raise Crash(GONE)
        allowance, budget, seconds = self._allowance, self._allowance.budget, patience.seconds
        left = allowance.expect_some()
        self.worker.allow(left)
        due = Due(seconds, left, self._waited)
        try:
            frame = request.beside(self._first) if self.begins else request
            return self.exchange(frame, due, known)
        except DeadlineError:
            self.end()
            late = patience.end("No answer")
            raise (Timeout(budget.over) if left < seconds or budget.is_spent else late) from None
        finally:
            allowance.spend(due.used)

    def exchange(self, request: Frame, deadline: Deadline, known: Container[bytes] = ()) -> Frame:
        """The reply to a request. Raises DeadlineError, Crash and Unsent.

        The worker still runs after a DeadlineError.
        """
        assert self.worker is not None
        channel, is_sent = self.worker.channel, False
        try:
            channel.send(request, deadline)
            is_sent = True
            while True:
                reply = channel.receive(deadline, known)
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
