"""The failures of a class that no known mistake explains, and where one answer of each goes wrong.

Looking for the place in somebody's code takes about a second, so it is done for the commonest of
these failures only, and kept in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from grader.classes.folder.ledger import Ledger
from grader.classes.folder.types import LedgerEntry, Version
from grader.classes.grading import lane_work
from grader.classes.report.reasons import Reason, first_reason
from grader.classes.report.types import Unexplained
from grader.engine import Engine, Request
from grader.run.lanes import can_fork, in_lanes
from grader.types.course import Course
from grader.types.report import Kind, Outcome, Report, StageResult

_LOOKED_AT = 3  # of a class's failures
_FEWEST = 2  # students who share one of those
_LISTED = 20  # failures on the page


def unexplained(ledger: Ledger) -> list[Unexplained]:
    """The commonest such failures, most students first, with the examples that are known."""
    return [
        Unexplained(
            group.slug,
            group.reason.says,
            tuple(group.students),
            ledger.fact(_key(group)) or "",
            group.reason.example,
            group.reason.hint,
        )
        for group in _commonest(ledger)[:_LISTED]
    ]


def look_for_examples(engine: Engine, ledger: Ledger, course: Course, version: Version) -> None:
    """Look for the place of the commonest failures that this version found, and note it.

    That runs in a process of its own, so an answer that ends it does not end the command.
    """
    wanted: dict[str, Request] = {}
    for group in _commonest(ledger)[:_LOOKED_AT]:
        first, key = group.first, _key(group)
        is_due = len(group.students) >= _FEWEST and first.version == version
        if is_due and ledger.fact(key) is None:
            stages = (course.stage(group.slug),)
            wanted[key] = Request(ledger.submission(first), stages, first.seed)
    if not wanted or not can_fork(engine.device):
        return

    def looked(lane: Engine) -> Callable[[str], str]:
        return lambda key: _example(lane.with_place(wanted[key], lane.grade(wanted[key])))

    for key, example in in_lanes(1, wanted, lambda: lane_work(engine.forked(), (), 0, looked)):
        ledger.note(key, example if isinstance(example, str) else "")


@dataclass
class _Group:
    """Students whose answers to a stage fail alike, and the first one's verdict and reason."""

    slug: str
    reason: Reason
    first: LedgerEntry
    students: list[str] = field(default_factory=list)


def _commonest(ledger: Ledger) -> list[_Group]:
    groups: dict[tuple[str, str], _Group] = {}
    for entry, stage, reason in unexplained_reasons(ledger):
        new = _Group(stage.slug, reason, entry)
        groups.setdefault((stage.slug, reason.key), new).students.append(entry.student)
    return sorted(groups.values(), key=lambda group: -len(group.students))


def unexplained_reasons(ledger: Ledger) -> Iterator[tuple[LedgerEntry, StageResult, Reason]]:
    """The stages that fail by no known mistake although the code answered in time, and why."""
    for entry in ledger.latest():
        for stage in entry.report.stages if entry.report and not entry.is_refused else ():
            reason = first_reason(stage)
            if reason and not reason.is_named and reason.check.outcome is Outcome.FAILED:
                yield entry, stage, reason


def _example(report: Report) -> str:
    """The place of the first cause, or its first wrong value; "" if neither was found."""
    [stage] = report.stages
    found = stage.causes[0].show.diagnosis if stage.causes else None
    if found is None:
        return ""
    return found.place or (found.text if found.kind is Kind.VALUE else "")


def _key(group: _Group) -> str:
    """The name in the ledger, which changes with the answer, the engine and the stage."""
    first = group.first
    stage = first.version.stages.get(group.slug, "")
    return f"example {group.slug} {first.record.content} {first.version.engine} {stage}"
