"""What is remembered of a learner between two commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from grader.types.report import Status


@dataclass(frozen=True)
class StageProgress:
    """One stage: the hints used, and where it stood when it was last graded (None: never).

    `rest` is what another version of the kit has written; it is kept as it is.
    """

    rungs: int = 0
    status: Status | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)


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
        stage = replace(stage, rungs=max(rung, stage.rungs))
        return replace(self, stages={**self.stages, slug: stage}, last_hint=slug)

    def with_status(self, slug: str, status: Status) -> Progress:
        """The same after `slug` was graded."""
        stage = replace(self.stage(slug), status=status)
        return replace(self, stages={**self.stages, slug: stage})
