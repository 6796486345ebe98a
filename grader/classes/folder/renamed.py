"""Verdicts from before the course renamed or removed stages. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from grader.classes.folder.types import LedgerEntry, Version
from grader.judge.verdict import judge
from grader.types.course import Course, Stage
from grader.types.report import Report, StageResult

_REMOVED = " (no longer in the course)"


def with_present_slugs(entry: LedgerEntry, course: Course) -> LedgerEntry:
    """The verdict with the present slugs of stages, and a mark on those that were removed."""
    known, new = {stage.slug for stage in course.stages}, course.renamed
    stages = {new.get(slug, slug): digest for slug, digest in entry.version.stages.items()}
    report = entry.report
    if report is not None:
        results = tuple(_present(stage, known, new) for stage in report.stages)
        report = replace(report, stages=results)
    return replace(entry, version=Version(entry.version.engine, stages), report=report)


def _present(stage: StageResult, known: Collection[str], new: Mapping[str, str]) -> StageResult:
    slug = new.get(stage.slug, stage.slug)
    cause = stage.caused_by and new.get(stage.caused_by, stage.caused_by)
    if slug not in known and not stage.title.endswith(_REMOVED):
        return replace(stage, title=stage.title + _REMOVED, caused_by=cause)
    if slug == stage.slug:
        return replace(stage, caused_by=cause) if cause != stage.caused_by else stage
    checks = (
        replace(check, id=f"{slug}.{check.id.removeprefix(f'{stage.slug}.')}")
        for check in stage.checks
    )
    return replace(stage, slug=slug, checks=tuple(checks), caused_by=cause)


def removed_stages(entries: Iterable[LedgerEntry], course: Course) -> tuple[Stage, ...]:
    """The stages in these verdicts that the course no longer has, as columns of a table need them.

    The titles say so.
    """
    known = {stage.slug for stage in course.stages}
    found: dict[str, Stage] = {}
    for entry in entries:
        for each in entry.report.stages if entry.report is not None else ():
            if each.slug not in known:
                about = (each.slug, each.title, each.max_score, each.bonus, (), ())
                found.setdefault(each.slug, Stage(*about, root=course.root))
    return tuple(found.values())


def keeping_removed(report: Report, before: Report | None, course: Course) -> Report:
    """The report with what the student's report `before` has of stages that were removed."""
    known = {stage.slug for stage in course.stages}
    own = [stage for stage in report.stages if stage.slug in known]
    kept = [stage for stage in before.stages if stage.slug not in known] if before else []
    if not kept and len(own) == len(report.stages):
        return report
    merged = judge(course, report.submission, report.device, [*own, *kept], report.notes)
    return replace(merged, seconds=report.seconds)
