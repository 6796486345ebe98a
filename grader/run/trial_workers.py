"""Runs the learner's tests: a new worker for each request, several at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from grader.run.allowance import Allowance, Due, Waited
from grader.run.conversation import Conversation
from grader.run.failures import Cancelled, Crash, Timeout
from grader.run.importing import Import
from grader.run.worker.wire import DeadlineError, Frame
from grader.run.workers import Interpreter

Result = TypeVar("Result")


class TrialWorkers:
    """Workers that import a stage and answer one request each."""

    def __init__(self, interpreter: Interpreter, imports: Import, allowance: Allowance) -> None:
        self._interpreter = interpreter
        self._imports = imports
        self._allowance = allowance
        self._conversations: set[Conversation] = set()
        self._counting = threading.Lock()
        self._interrupted = False

    def side_by_side(
        self, do: Callable[[Frame], Result], requests: Sequence[Frame]
    ) -> Iterator[Result]:
        """What `do` makes of each request, in their order; threads call it for several at once."""
        pool = ThreadPoolExecutor(self._interpreter.at_once)
        try:
            yield from pool.map(do, requests)
        except BaseException:  # such as Ctrl-C: do not wait for the others
            self.interrupt()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def tried(self, request: Frame) -> Frame:
        """The reply to a request. Raises AnswerError, and Cancelled after `interrupt`."""
        if self._interrupted:
            raise Cancelled
        allowance = self._allowance
        left = min(allowance.expect_some(), allowance.stage_left)
        worker = self._interpreter.start(tests=True)
        worker.allow(left)
        conversation = Conversation(worker, allowance)
        self._conversations.add(conversation)
        due = Due(min(left, allowance.for_tests.seconds), left, Waited(worker.waited_seconds))
        try:
            for frame in (self._imports.request(), request):
                reply = conversation.exchange(frame, due)
                if "error" in reply.header:
                    break  # this time the import failed
            return reply
        except DeadlineError:
            raise self._too_late(left) from None
        except Crash:
            if self._interrupted:
                raise Cancelled from None
            raise
        finally:
            self._conversations.discard(conversation)
            with self._counting:
                allowance.spend(due.used)
            conversation.end()

    def interrupt(self) -> None:
        """End the running requests. Called from another thread."""
        self._interrupted = True
        for conversation in (*self._conversations,):
            conversation.interrupt()

    def _too_late(self, left: float) -> Timeout:
        """The error for tests that did not end within their remaining seconds."""
        allowance = self._allowance
        if allowance.budget.is_spent:
            return Timeout(allowance.budget.over)
        seconds = allowance.for_tests.seconds
        late = allowance.for_tests.end("No end")
        return allowance.out_of_stage(left) if left < seconds else late
