"""Answers to a check's requests: the protocol, and the learner's code in a worker."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from grader.run.allowance import Allowance, Patience
from grader.run.budget import Budget
from grader.run.conversation import GONE, Conversation
from grader.run.facts import ForbiddenCall
from grader.run.failures import AnswerError, Cancelled, Crash, Timeout, Unsent
from grader.run.heard import Heard
from grader.run.importing import Import
from grader.run.solutions import References
from grader.run.sources import libraries
from grader.run.trial_workers import TrialWorkers
from grader.run.worker.wire import Frame
from grader.run.workers import Interpreter, Memory, Worker

Result = TypeVar("Result")
AT_IMPORT = "(while it was imported)"  # ends the message about such a timeout or crash


class Answers:
    """Whatever answers the requests of one stage's checks; what is here suits our own functions."""

    @property
    def forbidden(self) -> tuple[ForbiddenCall, ...]:
        """The calls of forbidden functions that were noticed in the learner's code."""
        return ()

    @property
    def over(self) -> str:
        """Why no other case may start: the submission's time is used up. "" if one may."""
        return ""

    def begin(self) -> None:
        """Start a case; forget the previous one."""

    def need(self, name: str) -> None:
        """Make sure that the entry point `name` exists. Raises AnswerError if it does not."""

    def answer(self, request: Frame, known: Container[bytes] = ()) -> Frame:
        """The reply to one request. Raises AnswerError.

        A reply whose digest is in `known` may stay unparsed.
        """
        raise NotImplementedError

    def tried(self, request: Frame) -> Frame:
        """The reply to a request to run the learner's tests, from a process of its own.

        Raises AnswerError.
        """
        return self.answer(request)

    def side_by_side(
        self, do: Callable[[Frame], Result], requests: Sequence[Frame]
    ) -> Iterator[Result]:
        """What `do`, which calls `tried`, makes of each request, in their order."""
        return map(do, requests)

    def close(self) -> str:
        """End; returns what the answering code printed."""
        return ""


@dataclass(frozen=True)
class Loaded:
    """A worker that has imported a whole submission, with its reply and what the import printed."""

    worker: Worker
    reply: Mapping[str, Any]
    printed: str


@dataclass(frozen=True)
class _Block:
    """The worker of one block of measured requests; `born` is its memory before it ran code."""

    number: int
    conversation: Conversation
    patience: Patience
    born: Memory | None


class WorkerAnswers(Answers):
    """The learner's code for one stage, in a worker that starts when it is first needed.

    `references` computes the answers for earlier stages that the course's own functions give. If
    the import is for every stage, as that of a notebook, `close` keeps its worker as `loaded` for
    the next stage. The import may take `load_seconds`, by default the course's limit. Nothing takes
    longer than the `budget` allows. With `believes`, the worker itself reports its memory, which is
    good enough for a picture. `worker` is used first, even if it has run something before.
    `alone` returns the import for the workers whose memory is measured.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        importing: Import,
        *,
        references: References | None = None,
        loaded: Loaded | None = None,
        load_seconds: float | None = None,
        budget: Budget | None = None,
        believes: bool = False,
        worker: Worker | None = None,
        alone: Callable[[], Import] | None = None,
    ) -> None:
        limits = importing.course.limits
        self._interpreter = interpreter
        self._import = importing
        self._allowance = Allowance(limits, budget or Budget())
        self._for_import = Patience(limits.load_seconds, load_seconds)
        self._references = references
        self._believes = believes
        self._heard = Heard(importing.stage)
        self._tests = TrialWorkers(interpreter, self._import, self._allowance)
        self._conversation: Conversation | None = None
        self._block: _Block | None = None
        self._imported: Loaded | None = None
        self._load_error: AnswerError | None = None
        self._absent: dict[str, AnswerError] = {}
        self._aborted = False
        self._first = worker
        self._alone = alone or (lambda: importing)
        self.loaded = loaded

    @property
    def forbidden(self) -> tuple[ForbiddenCall, ...]:
        """The calls of forbidden functions that were noticed in the learner's code."""
        return self._heard.forbidden

    @property
    def over(self) -> str:
        """Why no other case may start: the submission's time is used up. "" if one may."""
        budget = self._allowance.budget
        return budget.over if budget.is_spent else ""

    @property
    def died_at_import(self) -> bool:
        """Whether the import timed out or crashed."""
        return isinstance(self._load_error, (Timeout, Crash))

    @property
    def has_no_end(self) -> bool:
        """Whether the import timed out."""
        return isinstance(self._load_error, Timeout)

    @property
    def lacks(self) -> bool:
        """Whether the import failed or an entry point is missing."""
        return self._load_error is not None or bool(self._absent)

    @property
    def raised_at_import(self) -> int:
        """How many statements of the cells raised an exception when they were run."""
        cells = self._imported.reply.get("cells") if self._imported is not None else None
        return len(cells) if isinstance(cells, list) else 0

    def abort(self) -> None:
        """End the running call, and start no other case. Called from another thread."""
        self._aborted = True
        conversation, block = self._conversation, self._block
        if conversation is not None:
            conversation.interrupt()
        if block is not None:
            block.conversation.interrupt()
        self._tests.interrupt()

    def begin(self) -> None:
        """Start a case, in a new worker if the previous one has died. Raises Cancelled."""
        if self._aborted:
            raise Cancelled
        if self._references is not None:
            self._references.begin()
        self._end_block()
        if self._conversation is not None:
            self._conversation.begins = True
        with suppress(AnswerError):  # `need` raises it in the check
            self._ensure_worker()

    def close(self) -> str:
        """End or keep the worker; returns what the learner's code printed."""
        self._end_block()
        conversation, self._conversation = self._conversation, None
        if conversation is not None and conversation.worker is not None:
            imported = self._imported
            is_whole = imported is not None and imported.worker is conversation.worker
            if not self._import.for_every_stage or not is_whole or self._aborted:
                conversation.worker.release()
            else:
                self.loaded = imported
        return self._heard.told

    def need(self, name: str) -> None:
        """Make sure that the worker has the entry point `name`. Raises AnswerError otherwise."""
        if self._load_error is not None:
            raise self._load_error
        if name in self._absent:
            raise self._absent[name]

    def answer(self, request: Frame, known: Container[bytes] = ()) -> Frame:
        """The worker's reply to one request. Raises AnswerError."""
        if "measured" in request.header and self._interpreter.forks and not self._believes:
            return self._measured(request)
        if self._conversation is None:
            raise Crash(GONE)
        patience = self._allowance.for_call
        try:
            return self._ask(self._conversation, request, patience, known)
        except Unsent:
            if not self._conversation.begins:
                raise
            with suppress(AnswerError):  # the worker died between two checks: start another
                self._ensure_worker()
            return self._ask(self._conversation, request, patience, known)

    def tried(self, request: Frame) -> Frame:
        """The reply of a worker that is forked for this request and imports the stage for it."""
        if self._aborted:
            raise Cancelled
        if self._conversation is not None and not self._interpreter.forks:
            self._conversation.end()  # only one process can run
        return self._tests.tried(request)

    def side_by_side(
        self, do: Callable[[Frame], Result], requests: Sequence[Frame]
    ) -> Iterator[Result]:
        """What `do` makes of each request, in order; it is called for several at once."""
        return self._tests.side_by_side(do, requests)

    def _ask(
        self,
        conversation: Conversation,
        request: Frame,
        patience: Patience,
        known: Container[bytes] = (),
    ) -> Frame:
        """The reply to a check's request, the first of its case or a later one."""
        reply = conversation.ask(request, patience, known)
        conversation.begins = False
        self._heard.listen(reply)
        if self._interpreter.gpu and _has_lost_cuda(reply):
            conversation.end()  # the next case gets another worker
        return reply

    def _ensure_worker(self) -> None:
        """Start a worker and import the stage in it; a broken import is not tried again."""
        if self._conversation is not None and self._conversation.worker is not None:
            return
        if self._load_error is not None:
            raise self._load_error
        try:
            self._load()
        except AnswerError as error:
            self._load_error = error
            raise

    def _load(self) -> None:
        request = self._import.request()
        loaded, self.loaded = self.loaded, None
        if loaded is not None:
            self._conversation = self._talk(loaded.worker)
            self._heard.printed = loaded.printed
        else:
            worker, self._first = self._first or self._interpreter.start(), None
            self._conversation = self._talk(worker)
            reply = self._ask_to_import(self._conversation, request)
            self._heard.listen(reply)
            loaded = Loaded(worker, reply.header, self._heard.printed)
        self._absent = self._import.absent(loaded.reply)
        self._imported = loaded

    def _talk(self, worker: Worker) -> Conversation:
        first = {"begin": True, "forbidden": self._import.stage.forbidden}
        return Conversation(worker, self._allowance, self._references, first)

    def _ask_to_import(self, conversation: Conversation, request: Frame) -> Frame:
        try:
            return conversation.ask(request, self._for_import)
        except (Timeout, Crash) as error:
            raise type(error)(f"{error} {AT_IMPORT}") from None

    # --- measured requests: each block has its own worker, which cannot tell that it is measured --

    def _measured(self, request: Frame) -> Frame:
        """The reply to a request of a measured block. Raises AnswerError.

        The kernel reports the worker's memory; if the kernel cannot, the worker does.
        """
        number = request.header["measured"]
        block = self._block
        if block is None or block.number != number:
            self._end_block()
            block = self._block = self._start_block(number)
        if block.born is None:
            return self._ask(block.conversation, request, block.patience)
        if request.header["op"] == "usage":
            return block.conversation.usage_since(block.born)
        header = {key: value for key, value in request.header.items() if key != "measured"}
        return self._ask(block.conversation, Frame(header, request.data), block.patience)

    def _start_block(self, number: int) -> _Block:
        if self._load_error is not None:
            raise self._load_error
        alone = self._alone()
        request, names = alone.request(), libraries(alone.submission, alone.stage)
        conversation = self._talk(self._interpreter.start(measured=True))
        try:
            # What a library takes is not the code's: matplotlib alone takes 100 MiB.
            self._ask_to_import(conversation, Frame({"op": "preload", "names": names}))
            born = conversation.memory
            reply = self._ask_to_import(conversation, request)
            alone.absent(reply.header)
        except BaseException:
            conversation.end()
            raise
        self._heard.note_calls(reply)
        # Its first calls repeat imports of earlier workers, which takes time.
        return _Block(number, conversation, Patience(self._import.course.limits.load_seconds), born)

    def _end_block(self) -> None:
        block, self._block = self._block, None
        if block is not None:
            block.conversation.end()


def _has_lost_cuda(reply: Frame) -> bool:
    """Whether an error ended all work of the worker on the GPU, an index too large, for example."""
    error = reply.header.get("error")
    return isinstance(error, dict) and str(error.get("message")).startswith("CUDA error: ")
