"""Why an answer to a stage fails, as what students of a class have in common. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from grader.show.failure import essence
from grader.types.report import EARLIER, CheckResult, Kind, Outcome, StageResult, Status
from grader.types.text import is_unloaded

UNLOADED = "unloaded"  # the key of code that does not get as far as a check
UNEXPLAINED = ("timeout ", "check ", UNLOADED)  # how the keys of what nothing explains begin


@dataclass(frozen=True)
class Reason:
    """The first cause of a failure; answers with equal `key`s fail alike.

    `says` is what the feedback says: a known mistake (`is_named`), a symptom or the title of a
    check. `check` is the one that shows it.
    """

    key: str
    says: str
    is_named: bool
    check: CheckResult

    @property
    def example(self) -> str:
        """The message in short: the input, the expected and the actual result, the line of code."""
        return essence(replace(self.check, diagnosis=None))

    @property
    def hint(self) -> int | None:
        """The number of the hint about it."""
        if self.key == UNLOADED:
            return None
        found = self.check.diagnosis
        return found.hint if found is not None and found.hint is not None else self.check.hint


def first_reason(stage: StageResult) -> Reason | None:
    """Why a stage fails by its own fault; None if it does not, or if the grader failed."""
    if stage.status is not Status.FAILED or stage.caused_by is not None or not stage.causes:
        return None
    own = (cause for cause in stage.causes if cause.show.way != EARLIER)
    cause = next(own, stage.causes[0])
    check, found = cause.show, cause.show.diagnosis
    if check.outcome is Outcome.TIMEOUT:
        return Reason(f"timeout {check.id}", f"It runs out of time: {check.title}", False, check)
    if check.outcome is not Outcome.FAILED:
        return None
    if is_unloaded(check.message):
        says = "The code cannot be imported, or does not define what the stage asks for"
        return Reason(UNLOADED, says, False, check)
    if found is None:
        way = re.split("[ ,]", check.way)[0]  # without the place, which is the student's own
        return Reason(f"check {check.id} {way}", check.title, False, check)
    # The numbers in a symptom's text differ from answer to answer, but it is the same symptom.
    key = found.id if found.kind in (Kind.NAME, Kind.SYMPTOM) else f"{found.id} {found.text}"
    return Reason(key, found.text, cause.show.is_named, check)
