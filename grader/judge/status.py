"""Where a stage stands, from the facts on its checks. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from grader.run.facts import CaseFact, Ending, PlannedCheck, StageFacts
from grader.types.report import Outcome, Status

OUTCOMES = {
    Ending.PASSED: Outcome.PASSED,
    Ending.WRONG: Outcome.FAILED,
    Ending.RAISED: Outcome.FAILED,
    Ending.NOT_WRITTEN: Outcome.FAILED,
    Ending.CRASHED: Outcome.FAILED,
    Ending.TIMED_OUT: Outcome.TIMEOUT,
    Ending.SKIPPED: Outcome.SKIPPED,
    Ending.BROKEN: Outcome.ERROR,
    Ending.NOT_RUN: Outcome.ERROR,
}
_LOST = "The check gave no answer"


def status(facts: StageFacts) -> Status:
    """Where a stage stands. NOT_STARTED only if every check that ran met an untouched stub.

    With a forbidden call it does not pass, whatever the checks say.
    """
    endings = [deciding_fact(planned, facts.cases).ending for planned in facts.planned]
    ran = [ending for ending in endings if ending is not Ending.SKIPPED]
    if ran and all(ending is Ending.NOT_WRITTEN for ending in ran):
        return Status.NOT_STARTED
    if any(OUTCOMES[ending] is Outcome.ERROR for ending in endings):
        return Status.ERROR
    if ran and all(ending is Ending.PASSED for ending in ran) and not facts.forbidden:
        return Status.PASSED
    return Status.FAILED


def deciding_fact(planned: PlannedCheck, facts: Iterable[CaseFact]) -> CaseFact:
    """The fact that decides a check: its first case that did not pass, in the order planned.

    Cases run from the smallest input up, so that is the smallest input that fails.
    """
    by_id = {fact.case.id: fact for fact in facts if fact.case.check == planned.id}
    found = [by_id.get(case.id, CaseFact(case, Ending.BROKEN, _LOST)) for case in planned.cases]
    failed = [f for f in found if f.ending not in (Ending.PASSED, Ending.SKIPPED)]
    for fact in failed:
        if fact.ending is not Ending.NOT_WRITTEN:
            return fact
    if failed:
        return failed[0]
    return next((fact for fact in found if fact.ending is Ending.PASSED), found[0])
