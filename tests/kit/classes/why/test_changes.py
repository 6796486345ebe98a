"""The kit says for each check what changed from one verdict to the next, and why."""

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from grader.classes.folder.types import LedgerEntry, SubmissionRecord, Version
from grader.classes.why.changes import changed, reasons
from grader.types.report import CheckResult, Outcome, Report, StageResult, Status

CAME = datetime(2026, 10, 24, 23, 59, 1, tzinfo=timezone.utc)


def entry(*scores: float, message: str = "It is wrong\n  call f(1)") -> LedgerEntry:
    """A verdict on one stage with a check of one point for each score."""
    checks = tuple(
        CheckResult(
            f"mean.c{number}",
            f"Check {number}",
            Outcome.PASSED if score else Outcome.FAILED,
            score,
            1,
            "" if score else message,
        )
        for number, score in enumerate(scores)
    )
    most = float(len(scores))
    stage = StageResult("mean", "Mean", Status.FAILED, sum(scores), most, False, checks)
    report = Report("Course", "ann", "cpu", sum(scores), most, 0, (stage,))
    version = Version("e1", {"mean": "m1", "other": "o1"})
    return LedgerEntry(SubmissionRecord("ann", "c1"), version, 5, "cpu", report, CAME)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (replace(entry(1), version=Version("e2", {"mean": "m1"})), ["the kit"]),
        (
            replace(entry(1), version=Version("e1", {"mean": "m2", "other": "o2"})),
            ["changed mean,"],
        ),
        (replace(entry(1), record=SubmissionRecord("ann", "c2")), ["another submission"]),
        (
            replace(entry(1), record=replace(entry(1).record, submitted=CAME)),
            ["the time of submission is 2026-10-24 23:59:01 UTC"],
        ),
        (replace(entry(1), seed=6), ["the seed is 6 instead of 5"]),
        (replace(entry(1), device="cuda"), ["the device is cuda"]),
        (replace(entry(1), when=CAME.replace(year=2027)), []),
    ],
)
def test_every_reason_is_named_and_nothing_else(after: LedgerEntry, said: list[str]) -> None:
    found = list(reasons(entry(1), after, None))
    assert len(found) == len(said)
    assert all(words in sentence for words, sentence in zip(said, found, strict=True))


def test_gained_and_lost_points_come_with_what_the_checks_said() -> None:
    after = replace(entry(1, 0, 1, message="Now it is worse"), seed=6)
    told = list(changed(entry(0, 1, 1), after, ["mean"], None))
    assert told[1:] == [
        "mean: 2 of 3 -> 2 of 3; gained c0; lost c1",
        "c0 passes now; before: It is wrong",
        "c1 fails now: Now it is worse",
    ]
    other_code = replace(after, record=SubmissionRecord("ann", "c2"))
    assert len(list(changed(entry(0, 1, 1), other_code, ["mean"], None))) == 2
    assert list(changed(entry(0, 1, 1), after, ["other"], None))[1:] == ["No points changed."]


def test_a_verdict_that_changes_without_a_reason_is_called_so() -> None:
    [first, *_] = changed(entry(0), entry(1), ["mean"], None)
    assert "random numbers, the time or a library that was missing" in first
