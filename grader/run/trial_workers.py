"""Runs the learner's tests: a new worker for each request."""

from __future__ import annotations

from grader.run.allowance import Allowance, Due
from grader.run.conversation import Conversation
from grader.run.failures import Cancelled, Crash, Timeout
from grader.run.importing import Import
from grader.run.worker.wire import DeadlineError, Frame
from grader.run.workers import Interpreter


class TrialWorkers:
    """Workers that import a stage and answer one request each."""

    def __init__(self, interpreter: Interpreter, imports: Import, allowance: Allowance) -> None:
        self._interpreter = interpreter
        self._imports = imports
        self._allowance = allowance
        self._conversation: Conversation | None = None
        self._interrupted = False

    def tried(self, request: Frame) -> Frame:
        """The reply to a request. Raises AnswerError, and Cancelled after `interrupt`."""
        allowance, budget = self._allowance, self._allowance.budget
        allowance.expect_some()
        left = min(allowance.stage_left, budget.left)
        worker = self._interpreter.start(tests=True)
        worker.allow(left)
        conversation = self._conversation = Conversation(worker, allowance)
        due = Due(min(left, allowance.for_tests.seconds), left, worker.waited_seconds)
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
            self._conversation = None
            allowance.spend(due.used)
            conversation.end()

    def interrupt(self) -> None:
        """End the running request. Called from another thread."""
        self._interrupted = True
        if (conversation := self._conversation) is not None:
            conversation.interrupt()

    def _too_late(self, left: float) -> Timeout:
        """The error for tests that did not end within their remaining seconds."""
        allowance = self._allowance
        if allowance.budget.is_spent:
            return Timeout(allowance.budget.over)
        seconds = allowance.for_tests.seconds
        late = allowance.for_tests.end("No end")
        return allowance.out_of_stage("No end", left) if left < seconds else late
