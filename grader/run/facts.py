"""What was planned and what happened: the facts that the judge turns into a report."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum

from grader.run.worker.wire import Frame
from grader.types.comparison import Comparison

# The message when a check fails on an answer before it has judged it.
NO_SENSE = "The check cannot make sense of this answer"


class Ending(Enum):
    """How one case of a check ended."""

    PASSED = "passed"
    WRONG = "wrong"  # the check rejected the answer
    RAISED = "raised"  # the learner's code raised, or returned a value of another type
    NOT_WRITTEN = "not written"  # the unchanged stub's NotImplementedError
    CRASHED = "crashed"  # the process that ran the learner's code ended
    TIMED_OUT = "timed out"
    SKIPPED = "skipped"
    BROKEN = "broken"  # the check itself failed: the grader's fault
    NOT_RUN = "not run"  # after an earlier case of the same check that made it needless


FINE = (Ending.PASSED, Ending.SKIPPED)


@dataclass(frozen=True)
class Exchange:
    """One request to the worker and its reply."""

    request: Frame
    reply: Frame


@dataclass(frozen=True)
class Case:
    """One parametrized case of a check, as planned."""

    id: str
    check: str


@dataclass(frozen=True)
class PlannedCheck:
    """A check as planned before anything ran: if it gets no fact, it is lost, not passed.

    `stand_in` is the id of the check that decides for this one when it is skipped. `pays` names the
    constant answers that its author lets it accept, `hint` the hint for learners who fail it.
    """

    id: str
    title: str
    points: float
    cases: tuple[Case, ...]
    stand_in: str | None = None
    pays: tuple[str, ...] = ()
    hint: int | None = None


@dataclass(frozen=True)
class CaseFact:
    """How one case ended; `exchanges` are the requests of the check and the replies to them.

    `target` is what the check called last: a function, "Class.__init__" or "Class.forward". Within
    a process, facts with the same `number` differ only in their seconds. `compared` holds the
    measured comparisons, if they were measured, and `lines` the lines of the check's file that the
    error passed through. Cases that fail in one `way` may have one cause; "" if unknown. `axes` are
    the names and sizes of the expected axes in the comparison that failed.
    """

    case: Case
    ending: Ending
    message: str = ""
    seconds: float = 0.0
    target: str = ""
    exchanges: tuple[Exchange, ...] = field(default=(), repr=False)
    number: int | None = field(default=None, compare=False)
    compared: tuple[Comparison, ...] = field(default=(), compare=False, repr=False)
    lines: tuple[int, ...] = ()
    way: str = ""
    axes: tuple[tuple[str, int], ...] = ()

    @property
    def size(self) -> int:
        """How many numbers the arguments of the last call hold."""
        request = self.exchanges[-1].request.header if self.exchanges else {}
        return sum(math.prod(array["shape"]) for array in request.get("arrays", ()))

    @property
    def has_judged(self) -> bool:
        """Whether one of the check's own assertions found an answer wrong."""
        return self.ending is Ending.WRONG and not self.message.startswith(NO_SENSE)

    @property
    def faulty_line(self) -> int:
        """The line of the check's file that is at fault, 0 if none is."""
        is_own = self.ending is Ending.BROKEN or self.message.startswith(NO_SENSE)
        return self.lines[-1] if is_own and self.lines else 0


@dataclass(frozen=True)
class ForbiddenCall:
    """A call of something that the stage forbids; `place` is the learner's line, "" if unknown."""

    name: str
    place: str = ""


@dataclass(frozen=True)
class StageFacts:
    """What happened in one stage; `printed` is what the learner's code printed.

    `forbidden` are the calls noticed during the checks, `in_source` those found in the source. If
    `time_is_up`, nothing else of the submission can run.
    """

    planned: tuple[PlannedCheck, ...]
    cases: tuple[CaseFact, ...]
    printed: str = ""
    forbidden: tuple[ForbiddenCall, ...] = ()
    in_source: tuple[ForbiddenCall, ...] = ()
    time_is_up: bool = False

    def without_exchanges(self) -> StageFacts:
        """The same facts without the requests and replies."""
        return replace(self, cases=tuple(replace(case, exchanges=()) for case in self.cases))
