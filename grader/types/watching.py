"""What `grade watch` knows at one moment; it is drawn anew whenever it changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from grader.types.course import Stage
from grader.types.hints import Hints
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
    """A hint that was asked for; `advised` if it was chosen for the mistake that was found."""

    hints: Hints
    number: int
    advised: bool = False


@dataclass(frozen=True)
class Every:
    """All failing checks of the stage."""


@dataclass(frozen=True)
class Standing:
    """All stages and where they stand."""


@dataclass(frozen=True)
class Difference:
    """The learner's file, called `name`: the stub that it began from, and what it is now."""

    name: str
    stub: str
    now: str


Panel = HintShown | Every | Standing | Difference


@dataclass(frozen=True)
class Success:
    """A stage that has just passed, and what was learnt in it."""

    stage: Stage
    points: float
    learnt: str


@dataclass(frozen=True)
class Watching:
    """The stage that the learner is at, its last verdict, and what they have asked to see.

    `report` is on `stage` alone, None before the first verdict; `seconds` is how long that took,
    or while the engine is judging how long it has been.
    `success` is the stage passed last, until the next verdict on another one; `notice` one line
    about what went wrong outside the learner's code; `panel` what is shown in place of the first
    failure, from its line `scroll` on.
    """

    workspace: Workspace
    progress: Progress
    stage: Stage
    phase: Phase = Phase.STARTING
    report: Report | None = None
    seconds: float = 0.0
    success: Success | None = None
    notice: str = ""
    panel: Panel | None = None
    scroll: int = 0

    def at(self, stage: Stage) -> Watching:
        """The same with the learner at `stage`; nothing is known of it if it is another one."""
        if stage == self.stage:
            return self
        return replace(self, stage=stage, report=None, panel=None, scroll=0)

    def showing(self, panel: Panel | None) -> Watching:
        """The same with this panel from its first line."""
        return replace(self, panel=panel, scroll=0, notice="")
