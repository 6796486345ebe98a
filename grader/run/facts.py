"""What was planned and what happened: the facts that the judge turns into a report."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum

from grader.run.worker.wire import Frame
from grader.types.proof import Comparison

# What is told where a check fails at an answer before it has judged it.
NO_SENSE = "The check cannot make sense of this answer"


class Ending(Enum):
    """How one case of a check ended."""

    PASSED = "passed"
    WRONG = "wrong"  # the check was not content with the answer
    RAISED = "raised"  # the learner's code raised, or gave back something of another type
    NOT_WRITTEN = "not written"  # the untouched stub's NotImplementedError
    CRASHED = "crashed"  # the process that ran the learner's code ended
    TIMED_OUT = "timed out"
    SKIPPED = "skipped"
    BROKEN = "broken"  # the check itself failed: the grader's fault
    NOT_RUN = "not run"  # an earlier case of the same check timed out or crashed


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
    """A check as planned before anything ran: one without a fact is lost, not passed.

    `stand_in` is the id of the check that decides for this one where it is skipped. `pays` names
    the constant answers for which its author lets it pass, `hint` the rung for whoever fails it.
    """

    id: str
    stage: str
    title: str
    points: float
    cases: tuple[Case, ...]
    stand_in: str | None = None
    pays: tuple[str, ...] = ()
    hint: int | None = None


@dataclass(frozen=True)
class CaseFact:
    """How one case ended; `exchanges` are what passed between the check and the learner's code.

    `target` is what the check called last: a function, "Class.__init__" or "Class.forward". Facts
    of one `number`, within a process, are the same but for their seconds. `compared` is what was
    measured, if it was to be; `lines` those of the check's file that an error came through. Cases
    that fail in one `way` may do so for one reason; "" if nothing is known of it. `axes` are the
    names and sizes of the axes that were expected in the comparison that failed.
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
        """How many numbers the arguments of its last call hold."""
        request = self.exchanges[-1].request.header if self.exchanges else {}
        return sum(math.prod(array["shape"]) for array in request.get("arrays", ()))

    @property
    def has_judged(self) -> bool:
        """Whether the check has found an answer wrong by what it asserts."""
        return self.ending is Ending.WRONG and not self.message.startswith(NO_SENSE)

    @property
    def faulty_line(self) -> int:
        """The line of the check's file that is at fault, 0 if none is."""
        is_own = self.ending is Ending.BROKEN or self.message.startswith(NO_SENSE)
        return self.lines[-1] if is_own and self.lines else 0


@dataclass(frozen=True)
class ForbiddenCall:
    """A call of what the stage forbids; `place` tells the learner's line, "" if it is not known."""

    name: str
    place: str = ""


@dataclass(frozen=True)
class StageFacts:
    """What happened in one stage; `printed` is what the learner's code printed.

    `forbidden` are the calls that the checks met, `in_source` those that its source shows. If the
    `time_is_up`, nothing of the submission can be run after this.
    """

    slug: str
    planned: tuple[PlannedCheck, ...]
    cases: tuple[CaseFact, ...]
    printed: str = ""
    forbidden: tuple[ForbiddenCall, ...] = ()
    in_source: tuple[ForbiddenCall, ...] = ()
    time_is_up: bool = False

    def without_exchanges(self) -> StageFacts:
        """The same without what passed between the checks and the learner's code."""
        return replace(self, cases=tuple(replace(case, exchanges=()) for case in self.cases))
