"""The learner's progress, which the kit remembers between commands."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from grader.types.report import StageResult, Status

NOTEBOOK = "a notebook"  # replaces the text's digest in a verdict on a notebook


@dataclass(frozen=True)
class Advice:
    """The hint about the mistake last found: its rung, and the mistake's id and sentence."""

    rung: int
    id: str
    text: str
    given: bool = False  # whether the learner has seen the hint since the mistake was found


@dataclass(frozen=True)
class StageProgress:
    """One stage. `status` and `score` are from the last grading; `status` is None before the first.

    `rungs` is the highest hint used, `best` the most points so far, `attempts` how many different
    answers were graded (`digest` is that of the last), `passed` when it first passed (ISO 8601,
    UTC), and `gave_up` whether the learner looked at the solution before that. `judged` is the
    `seal` of the last verdict, which identifies its text. `repair` is the learner's own line with
    the edit that makes the checks pass, shown after the last hint. `asked` is the hint whose answer
    comes next (0: none). It `waits` if it fails because of an earlier stage. `rest` is data from
    another version of the kit, kept unchanged.
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
    judged: str | None = None
    repair: str = ""
    asked: int = 0
    waits: bool = False
    rest: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether the learner may see everything: the stage passed once, or was given up."""
        return self.gave_up or self.passed is not None

    @property
    def is_changed(self) -> bool:
        """Whether the last verdict is on another text than the current one."""
        return self.status is None and self.judged is not None and self.attempts > 0

    def is_on(self, text: str) -> bool:
        """Whether there is a verdict and it is on the text with this digest."""
        return self.status is not None and self.judged == seal(text, self.status, self.score)

    def next_rung(self, total: int) -> int:
        """The hint to show next, of `total`: first the one about the mistake."""
        if self.advice is not None and not self.advice.given and self.advice.rung <= total:
            return self.advice.rung
        return self.asked if 0 < self.asked <= total else min(self.rungs + 1, total)


@dataclass(frozen=True)
class Progress:
    """All stages by slug; `last_hint` is the slug of the stage of the last hint."""

    stages: Mapping[str, StageProgress] = field(default_factory=dict)
    last_hint: str | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)

    def stage(self, slug: str) -> StageProgress:
        """The progress of one stage, maybe empty."""
        return self.stages.get(slug, StageProgress())

    def with_hint(self, slug: str, rung: int, *, asks: bool = False) -> Progress:
        """The progress after the hint `rung` (from 1) of `slug` was shown.

        `asks` if only its question was: the answer comes next.
        """
        stage = self.stage(slug)
        advice, asked = stage.advice, stage.asked
        if advice is not None and advice.rung == rung:
            advice = replace(advice, given=True)
        if asks or asked == rung:
            asked = rung if asks else 0
        stage = replace(stage, rungs=max(rung, stage.rungs), asked=asked, advice=advice)
        return replace(self._with(slug, stage), last_hint=slug)

    def renamed(self, old: str, new: str) -> Progress:
        """The progress after a stage was renamed: what is known under both slugs comes together."""
        if old not in self.stages:
            return self
        stages = dict(self.stages)
        before, after = stages.pop(old), self.stage(new)
        passed = min(filter(None, (before.passed, after.passed)), default=None)
        stages[new] = replace(
            after if after.attempts else before,
            rungs=max(before.rungs, after.rungs),
            best=max(before.best, after.best),
            attempts=before.attempts + after.attempts,
            passed=passed,
            gave_up=before.gave_up or after.gave_up,
        )
        hint = new if self.last_hint == old else self.last_hint
        return replace(self, stages=stages, last_hint=hint)

    def of(self, texts: Mapping[str, str], *, notebooks: bool = False) -> Progress:
        """The progress without verdicts on other texts than `texts`, which are by slug.

        A stage without a verdict has no status and no points, but keeps its best score and the
        rest. With `notebooks`, verdicts on a notebook's cells stay too.
        """
        stages = dict(self.stages)
        for slug, stage in self.stages.items():
            is_present = slug in texts and stage.is_on(texts[slug])
            if not is_present and not (notebooks and stage.is_on(NOTEBOOK)):
                stages[slug] = replace(stage, status=None, score=0.0, waits=False)
        return replace(self, stages=stages)

    def with_result(
        self, result: StageResult, digest: str, now: str, text: str = NOTEBOOK
    ) -> Progress:
        """The progress after a stage was graded.

        `digest` identifies the answer, `now` is ISO 8601, `text` is the digest of everything that
        the verdict depends on.
        """
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
            judged=seal(text, result.status, result.score),
            repair=result.repair,
            waits=result.caused_by is not None,
        )
        return self._with(result.slug, stage)

    def with_surrender(self, slug: str) -> Progress:
        """The progress after the learner saw the solution of `slug` before passing it."""
        return self._with(slug, replace(self.stage(slug), gave_up=True))

    def _with(self, slug: str, stage: StageProgress) -> Progress:
        return replace(self, stages={**self.stages, slug: stage})


def seal(text: str, status: Status, score: float) -> str:
    """The SHA-256 of a verdict and of the digest of its text.

    If another version of the kit overwrites the verdict, the seal no longer fits.
    """
    return hashlib.sha256(f"{text} {status.value} {float(score)}".encode()).hexdigest()


def _advice(result: StageResult, before: Advice | None) -> Advice | None:
    """The hint for the first named mistake, or for the first check that fails."""
    found = result.advised
    if found is None or found.hint is None:
        return None
    given = before is not None and before.given
    same = before is not None and (before.id, before.rung) == (found.id, found.hint)
    return Advice(found.hint, found.id, found.text, given and same)
