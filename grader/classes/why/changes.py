"""What changed from one verdict on a student to the next, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from grader.classes.folder.counted import all_points
from grader.classes.folder.types import LedgerEntry
from grader.classes.report.student import moment
from grader.show.screen import amount, count
from grader.types.report import REFUSED, CheckResult, Report, StageResult
from grader.types.text import listed

_NO_REASON = (
    "The submission, the course and the kit are the same: does the answer use random numbers, the "
    "time or a library that was missing?"
)


@dataclass(frozen=True)
class StageChange:
    """A stage whose points changed: `had` and `has`, and the checks that gained or lost points.

    `gained` holds the earlier results of these checks, and `lost` the later ones, whose messages
    tell why the points were, or are, missing. A check that is not in both verdicts has no message.
    """

    slug: str
    had: str
    has: str
    gained: tuple[CheckResult, ...] = ()
    lost: tuple[CheckResult, ...] = ()
    other: tuple[CheckResult, ...] = ()

    @property
    def words(self) -> str:
        """In one line: the points, and the names of the checks."""
        parts = [f"{self.slug}: {self.had} -> {self.has}"]
        for word, checks in (
            ("gained", self.gained),
            ("lost", self.lost),
            ("worth other points now:", self.other),
        ):
            if checks:
                parts.append(f"{word} {', '.join(map(self._short, checks))}")
        return "; ".join(parts)

    @property
    def messages(self) -> Iterator[str]:
        """For each check that gained or lost points, the first line of its message."""
        for when, checks in (("passes now; before", self.gained), ("fails now", self.lost)):
            for check in checks:
                if check.message.strip():
                    first = check.message.strip().partition("\n")[0]
                    yield f"{self._short(check)} {when}: {first}"

    def _short(self, check: CheckResult) -> str:
        return check.id.removeprefix(f"{self.slug}.")


def stage_changes(before: LedgerEntry, after: LedgerEntry) -> Iterator[StageChange]:
    """Each stage that changes."""
    if before.report is None or after.report is None:
        return
    old = {stage.slug: stage for stage in before.report.stages}
    for stage in after.report.stages:
        was = old.get(stage.slug)
        had = {} if was is None else {check.id: check for check in was.checks}
        has = {check.id: check for check in stage.checks}
        scores = {name: check.score for name, check in had.items()}
        now = {name: check.score for name, check in has.items()}
        kept = {name for name in now if now[name] and scores.get(name)}
        gained = [n for n in now if n not in kept and now[n] > scores.get(n, 0)]
        lost = [n for n in scores if n not in kept and scores[n] > now.get(n, 0)]
        both = [name for name in has if name in had and name != f"{stage.slug}.{REFUSED}"]
        other = [has[name] for name in both if has[name].max_score != had[name].max_score]
        if gained or lost or other:
            yield StageChange(
                stage.slug,
                "-" if was is None else _of(was),
                _of(stage),
                tuple(had.get(name, has[name]) for name in gained),
                tuple(has.get(name, had[name]) for name in lost),
                tuple(other),
            )


def _of(stage: StageResult) -> str:
    return f"{amount(stage.score)} of {amount(stage.max_score)}"


def reasons(before: LedgerEntry, after: LedgerEntry, zone: tzinfo | None) -> Iterator[str]:
    """Everything that differs of what a verdict depends on."""
    if before.record.content != after.record.content:
        yield "another submission was graded"
    came = after.record.submitted
    if came is not None and came != before.record.submitted:
        yield f"the time of submission is {moment(came, zone)}"
    if before.version.engine != after.version.engine:
        yield "the kit, Python or a library has another version"
    report = after.report or before.report
    stages = [stage.slug for stage in report.stages] if report is not None else []
    old, new = before.version.stages, after.version.stages
    changed = [slug for slug in stages if old.get(slug) != new.get(slug)]
    if changed:
        needs = "they need" if changed[1:] else "it needs"
        yield f"the course has changed {listed(changed)}, or what {needs}"
    if before.seed != after.seed:
        yield f"the seed is {after.seed} instead of {before.seed}"
    if before.device != after.device and before.device and after.device:
        yield f"the device is {after.device} instead of {before.device}"


def with_changes(
    entries: Sequence[LedgerEntry], slugs: Sequence[str], zone: tzinfo | None
) -> Iterator[tuple[LedgerEntry, str, list[str]]]:
    """Each verdict with its points in words, and what `changed` since the one before."""
    for before, entry in zip((None, *entries), entries, strict=False):
        points = "points by hand" if entry.is_lost else count(all_points(entry), "point")
        lines = [] if before is None else changed(before, entry, slugs, zone)
        yield entry, points, list(lines)


def changed(
    before: LedgerEntry, after: LedgerEntry, slugs: Sequence[str], zone: tzinfo | None
) -> Iterator[str]:
    """What differs from the verdict before: what it depends on, then the points of the stages."""
    why = "; ".join(reasons(before, after, zone))
    yield f"Changed: {why}." if why else _NO_REASON
    stages = [each for each in stage_changes(before, after) if each.slug in slugs]
    is_same_code = before.record.content == after.record.content
    for stage in stages:
        yield stage.words
        yield from stage.messages if is_same_code else ()
    if not stages:
        yield "No points changed."


def outcomes(report: Report, of: Report) -> dict[str, str]:
    """How each check ended in the stages of another report."""
    slugs = {stage.slug for stage in of.stages}
    stages = [stage for stage in report.stages if stage.slug in slugs]
    return {check.id: check.outcome.value for stage in stages for check in stage.checks}
