"""What is remembered of a learner between two commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from grader.types.report import StageResult, Status


@dataclass(frozen=True)
class Advice:
    """The hint that speaks to the mistake last found: its rung, the mistake's id and sentence."""

    rung: int
    id: str
    text: str
    given: bool = False  # whether the learner has seen the hint since the mistake was found


@dataclass(frozen=True)
class StageProgress:
    """One stage. `status` is where it stood when it was last graded, None if it never was.

    `rungs` is the highest hint used, `score` the points then and `best` the most ever reached,
    `attempts` how many different answers were graded (`digest` is that of the last), `passed` when
    it first passed (ISO 8601, UTC), and `gave_up` whether the solution was looked at before that.
    `rest` is what another version of the kit has written; it is kept as it is.
    """

    rungs: int = 0
    status: Status | None = None
    score: float = 0.0
    best: float = 0.0
    attempts: int = 0
    digest: str | None = None
    passed: str | None = None
    gave_up: bool = False
    advice: Advice | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether nothing of the stage need be kept back: it passed once, or was given up."""
        return self.gave_up or self.passed is not None or self.status is Status.PASSED

    def next_rung(self, total: int) -> int:
        """The hint to show next, of `total`: the one that speaks to the mistake comes first."""
        if self.advice is not None and not self.advice.given and self.advice.rung <= total:
            return self.advice.rung
        return min(self.rungs + 1, total)


@dataclass(frozen=True)
class Progress:
    """All stages by slug; `last_hint` is the slug of the stage that a hint was last asked for."""

    stages: Mapping[str, StageProgress] = field(default_factory=dict)
    last_hint: str | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)

    def stage(self, slug: str) -> StageProgress:
        """What is remembered of one stage, be it nothing."""
        return self.stages.get(slug, StageProgress())

    def with_hint(self, slug: str, rung: int) -> Progress:
        """The same after the hint `rung` (from 1) of `slug` was shown."""
        stage = self.stage(slug)
        advice = stage.advice
        if advice is not None and advice.rung == rung:
            advice = replace(advice, given=True)
        stage = replace(stage, rungs=max(rung, stage.rungs), advice=advice)
        return replace(self._with(slug, stage), last_hint=slug)

    def with_result(self, result: StageResult, digest: str, now: str) -> Progress:
        """The same after a stage was graded; `digest` stands for the answer, `now` is ISO 8601."""
        stage = self.stage(result.slug)
        begun = result.status not in (Status.NOT_STARTED, Status.ERROR)
        attempts = stage.attempts + (begun and digest != stage.digest)
        passed = stage.passed
        if passed is None and result.status is Status.PASSED:
            passed = now
        stage = replace(
            stage,
            status=result.status,
            score=result.score,
            best=max(stage.best, result.score),
            attempts=attempts,
            digest=digest if begun else stage.digest,
            passed=passed,
            advice=_advice(result, stage.advice),
        )
        return self._with(result.slug, stage)

    def with_surrender(self, slug: str) -> Progress:
        """The same after the solution of `slug` was shown to one who had not passed it."""
        return self._with(slug, replace(self.stage(slug), gave_up=True))

    def _with(self, slug: str, stage: StageProgress) -> Progress:
        return replace(self, stages={**self.stages, slug: stage})


def _advice(result: StageResult, before: Advice | None) -> Advice | None:
    """The hint for the first mistake that has a name; the one from before if it is the same."""
    found = result.advised
    if found is None or found.hint is None:
        return None
    same = before is not None and (before.id, before.rung) == (found.id, found.hint)
    return before if same else Advice(found.hint, found.id, found.text)
