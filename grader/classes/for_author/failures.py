"""Gathers from the ledger the failures that no known mistake explains, with code for each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from grader.classes.folder.ledger import Ledger
from grader.classes.folder.types import LedgerEntry
from grader.classes.folder.unexplained import unexplained_reasons
from grader.classes.for_author.code import wrong_code
from grader.classes.for_author.types import Seen
from grader.classes.report.reasons import UNLOADED, Reason
from grader.classes.report.student import without
from grader.run.sources import stage_sources
from grader.types.course import Course, Stage
from grader.types.report import Outcome, StageResult

_LISTED = 60
_CALL = re.compile(r"^[ \t]*call\s+(\w+)", re.MULTILINE)
_ERROR = re.compile(r"\w+(Error|Exception)\b")
_NUMBER = re.compile(r"\d[\d.e+-]*")
_MESSAGE = 2000  # characters


@dataclass
class _Group:
    """The verdicts on answers to a stage that fail the same checks with the same words."""

    stage: Stage
    reason: Reason
    result: StageResult
    entries: list[LedgerEntry] = field(default_factory=list)


def unexplained_failures(ledger: Ledger, course: Course) -> tuple[Seen, ...]:
    """The failures of a class, without names.

    First come wrong values that nothing explains, then those with a symptom, then errors, which
    say something themselves; in each the most common first. Code that cannot be imported is left
    out: it is no answer.
    """
    groups: dict[tuple[str, ...], _Group] = {}
    known = {stage.slug: stage for stage in course.stages}
    for entry, result, reason in unexplained_reasons(ledger):
        if reason.key != UNLOADED and result.slug in known:
            key = (result.slug, reason.key, _words(reason), *_ids(result, failing=True))
            group = groups.setdefault(key, _Group(known[result.slug], reason, result))
            group.entries.append(entry)
    ordered = sorted(groups.values(), key=lambda one: (*_told(one), -len(one.entries)))
    return tuple(
        _seen(number, group, ledger) for number, group in enumerate(ordered[:_LISTED], start=1)
    )


def _seen(number: int, group: _Group, ledger: Ledger) -> Seen:
    stage, show = group.stage, group.reason.check
    entry = _entry(stage, show.message)
    name = f"{stage.slug}_{number}"
    codes = _codes(group, ledger, entry, name)
    first = group.entries[0].student
    return Seen(
        stage.slug,
        without(first, "a student", group.reason.says),
        show.diagnosis is not None,
        len(group.entries),
        _ids(group.result, failing=True),
        _ids(group.result, failing=False),
        without(first, "a student", show.message)[:_MESSAGE],
        entry,
        name,
        min(filter(None, codes), key=len, default=""),
    )


def _codes(group: _Group, ledger: Ledger, entry: str, name: str) -> Iterator[str]:
    """The code of each different answer of a group."""
    contents = {each.record.content: each for each in group.entries}
    for each in contents.values():
        sources = [text for _, text in stage_sources(ledger.submission(each), group.stage)]
        yield wrong_code(sources[::-1], entry, name, each.student)  # in their own order


def _words(reason: Reason) -> str:
    """The first line of the message without its numbers; "" if a symptom tells the group."""
    if reason.check.diagnosis is not None:
        return ""
    return _NUMBER.sub("", reason.check.message.partition("\n")[0])


def _entry(stage: Stage, message: str) -> str:
    """The entry point that a failing check has called, or the first of the stage."""
    names = [entry.name for entry in stage.entry_points]
    called = [name for name in _CALL.findall(message) if name in names]
    return (called or names)[0]


def _told(group: _Group) -> tuple[bool, bool]:
    """Whether Python's own error, or else a symptom, says something of the failure."""
    show = group.reason.check
    return bool(_ERROR.match(show.message)), show.diagnosis is not None


def _ids(result: StageResult, *, failing: bool) -> tuple[str, ...]:
    bad = (Outcome.FAILED, Outcome.TIMEOUT)
    wanted = bad if failing else (Outcome.PASSED,)
    return tuple(check.id for check in result.checks if check.outcome in wanted)
