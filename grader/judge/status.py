"""Where a stage stands, from the facts on its checks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grader.run.facts import FINE, CaseFact, Ending, StageFacts
from grader.types.report import EARLIER, Outcome, Status

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
    """Where a stage stands. NOT_STARTED only if every check that ran met an unchanged stub.

    With a forbidden call it does not pass, whatever the checks say.
    """
    endings = [fact.ending for fact in deciding_facts(facts)]
    ran = [ending for ending in endings if ending is not Ending.SKIPPED]
    if ran and all(ending is Ending.NOT_WRITTEN for ending in ran):
        return Status.NOT_STARTED
    if any(OUTCOMES[ending] is Outcome.ERROR for ending in endings):
        return Status.ERROR
    if ran and all(ending is Ending.PASSED for ending in ran) and not facts.forbidden:
        return Status.PASSED
    return Status.FAILED


def deciding_facts(facts: StageFacts) -> Iterator[CaseFact]:
    """For each planned check the fact that decides it: its first case that did not pass.

    Cases run from the smallest input up, so that is the smallest input that fails. One that fails
    only because of an earlier stage comes last.
    """
    by_case = {fact.case: fact for fact in facts.cases}
    for planned in facts.planned:
        yield _deciding(
            [by_case.get(c) or CaseFact(c, Ending.BROKEN, _LOST) for c in planned.cases]
        )


def _deciding(found: Sequence[CaseFact]) -> CaseFact:
    failed = [fact for fact in found if fact.ending not in FINE]
    if failed:
        return min(failed, key=lambda f: (f.way == EARLIER, f.ending is Ending.NOT_WRITTEN))
    return next((fact for fact in found if fact.ending is Ending.PASSED), found[0])
