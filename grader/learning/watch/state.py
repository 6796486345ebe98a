"""The state of `grade watch` at one moment; each change is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from grader.learning.hints.turn import Turn
from grader.learning.hints.types import Hints
from grader.learning.pictures.types import Trace
from grader.types.course import Stage
from grader.types.progress import Progress
from grader.types.report import Report
from grader.types.workspace import Workspace


class Phase(Enum):
    """What the engine is doing."""

    STARTING = "starting"
    JUDGING = "judging"
    WAITING = "waiting for a save"


@dataclass(frozen=True)
class HintShown:
    """The question, the answer or the hint that the learner asked for."""

    hints: Hints
    turn: Turn


@dataclass(frozen=True)
class Every:
    """All failing checks of the stage."""


@dataclass(frozen=True)
class Standing:
    """All stages with their status."""


@dataclass(frozen=True)
class DiffShown:
    """The learner's file `name`: its original stub, and its text now."""

    name: str
    stub: str
    now: str


@dataclass(frozen=True)
class NotesShown:
    """What a stage that has passed teaches, and why its solution is written this way."""

    hints: Hints


@dataclass(frozen=True)
class KeysShown:
    """Every key and what it does."""


@dataclass(frozen=True)
class TraceShown:
    """The stage's example on the learner's code: now, the solution's, and before the last save.

    `text` is the digest of the text that was run, "" before the first run.
    """

    text: str = ""
    trace: Trace | None = None
    right: Trace | None = None
    before: Trace | None = None


Panel = HintShown | Every | Standing | DiffShown | NotesShown | KeysShown | TraceShown


@dataclass(frozen=True)
class Success:
    """A stage that has just passed, and what was learnt in it."""

    stage: Stage
    points: float
    learnt: str


@dataclass(frozen=True)
class Watching:
    """The learner's current stage, its last verdict, and what the learner wants to see.

    `report` is only about `stage`, None before the first verdict; `seconds` is how long it took, or
    how long the engine has been grading so far. `trials` is on how many modules the learner's tests
    have been tried meanwhile, and of how many. `success` is the stage passed last, until the next
    verdict on another one. `notice` is one line about a problem outside the learner's code. `panel`
    replaces the first failure on the screen, from its line `scroll` on.
    """

    workspace: Workspace
    progress: Progress
    stage: Stage
    phase: Phase = Phase.STARTING
    report: Report | None = None
    seconds: float = 0.0
    trials: tuple[int, int] | None = None
    success: Success | None = None
    notice: str = ""
    panel: Panel | None = None
    scroll: int = 0

    def at(self, stage: Stage) -> Watching:
        """The same state at `stage`; without a report if that is another stage."""
        if stage == self.stage:
            return self
        return replace(self, stage=stage, report=None, trials=None, panel=None, scroll=0)

    def showing(self, panel: Panel | None) -> Watching:
        """The same state with this panel from its first line."""
        return replace(self, panel=panel, scroll=0, notice="")
