"""The report: what every channel (terminal, JSON, notebook, gradebook) shows of one submission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

SCHEMA = 1
UNLOCKED = "this machine does not lock: "  # a note of a report begins so


class Outcome(str, Enum):
    """How one check ended. FAILED is the learner's, ERROR is not; TIMEOUT never gave an answer."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"
    TIMEOUT = "timeout"


class Status(str, Enum):
    """Where one stage stands. NOT_STARTED is an untouched stub; ERROR is the grader's own fault."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_STARTED = "not_started"
    ERROR = "error"


@dataclass(frozen=True)
class Diagnosis:
    """The misconception whose outputs equal the learner's; `hint` is the rung that speaks to it."""

    id: str
    text: str
    hint: int | None = None


@dataclass(frozen=True)
class CheckResult:
    """One check of one stage: its outcome, its points and what to tell the learner."""

    id: str
    title: str
    outcome: Outcome
    score: float
    max_score: float
    message: str = ""
    diagnosis: Diagnosis | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class StageResult:
    """One stage: its checks in order; `caused_by` is the slug of the earlier stage to mend first.

    `printed` is what the learner's own code printed, already trimmed and made safe to show. With
    `is_partial` only the visible checks were there to run, and none if there are no `checks`;
    `perhaps` is then the earlier stage that may be the cause: without solutions it is not known.
    """

    slug: str
    title: str
    status: Status
    score: float
    max_score: float
    bonus: bool
    checks: tuple[CheckResult, ...]
    caused_by: str | None = None
    printed: str = ""
    is_partial: bool = False
    perhaps: str | None = None

    @property
    def advised(self) -> Diagnosis | None:
        """The first mistake that has a name, and a hint that speaks to it."""
        named = (check.diagnosis for check in self.checks if check.outcome is Outcome.FAILED)
        return next((found for found in named if found and found.hint is not None), None)


@dataclass(frozen=True)
class Report:
    """The verdict on one submission. `notes` are facts about the run (seed, missing isolation)."""

    course: str
    submission: str
    device: str
    score: float
    max_score: float
    bonus: float
    stages: tuple[StageResult, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every stage that is not a bonus has passed, or all where there is none."""
        core = [stage for stage in self.stages if not stage.bonus]
        return all(stage.status is Status.PASSED for stage in core or self.stages)

    @property
    def is_partial(self) -> bool:
        """Whether more checks than these decide: it is the verdict of a student's copy."""
        return any(stage.is_partial for stage in self.stages)


def to_json(report: Report) -> dict[str, Any]:
    """The report as schema 1 of the design prescribes, ready for `json.dumps`."""
    return {
        "schema": SCHEMA,
        "course": report.course,
        "submission": report.submission,
        "device": report.device,
        "score": report.score,
        "max_score": report.max_score,
        "bonus": report.bonus,
        "stages": [
            {
                "slug": stage.slug,
                "title": stage.title,
                "status": stage.status.value,
                "score": stage.score,
                "max_score": stage.max_score,
                "bonus": stage.bonus,
                "caused_by": stage.caused_by,
                "checks": [
                    {
                        "id": check.id,
                        "title": check.title,
                        "outcome": check.outcome.value,
                        "score": check.score,
                        "max_score": check.max_score,
                        "message": check.message,
                        "diagnosis": check.diagnosis
                        and {"id": check.diagnosis.id, "text": check.diagnosis.text},
                        "seconds": round(check.seconds, 4),
                    }
                    for check in stage.checks
                ],
            }
            for stage in report.stages
        ],
    }


def from_json(data: Mapping[str, Any]) -> Report:
    """The report that `to_json` gave; what its schema leaves out is left empty."""
    stages = tuple(
        StageResult(
            slug=stage["slug"],
            title=stage["title"],
            status=Status(stage["status"]),
            score=stage["score"],
            max_score=stage["max_score"],
            bonus=stage["bonus"],
            checks=tuple(map(_check, stage["checks"])),
            caused_by=stage["caused_by"],
        )
        for stage in data["stages"]
    )
    return Report(
        course=data["course"],
        submission=data["submission"],
        device=data["device"],
        score=data["score"],
        max_score=data["max_score"],
        bonus=data["bonus"],
        stages=stages,
    )


def _check(data: Mapping[str, Any]) -> CheckResult:
    named = data["diagnosis"]
    return CheckResult(
        id=data["id"],
        title=data["title"],
        outcome=Outcome(data["outcome"]),
        score=data["score"],
        max_score=data["max_score"],
        message=data["message"],
        diagnosis=None if named is None else Diagnosis(named["id"], named["text"]),
        seconds=data["seconds"],
    )
