"""Facts -> Report. Pure: nothing here runs, reads or prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from grader.run.facts import CaseFact, Ending, PlannedCheck, StageFacts
from grader.types.course import Course, Stage
from grader.types.report import CheckResult, Diagnosis, Outcome, Report, StageResult, Status

_OUTCOMES = {
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
# Endings that name no line of the learner's by themselves.
_WITHOUT_LINES = (Ending.WRONG, Ending.TIMED_OUT, Ending.CRASHED)
_LOST = "The check gave no answer"
_FORBIDDEN = "forbidden-call"  # no check's own id: a test's name has no hyphen


def status(facts: StageFacts) -> Status:
    """Where a stage stands. NOT_STARTED only if every check that ran met an untouched stub.

    With a forbidden call it does not pass, whatever the checks say.
    """
    endings = [_worst(planned, facts.cases).ending for planned in facts.planned]
    ran = [ending for ending in endings if ending is not Ending.SKIPPED]
    if ran and all(ending is Ending.NOT_WRITTEN for ending in ran):
        return Status.NOT_STARTED
    if any(_OUTCOMES[ending] is Outcome.ERROR for ending in endings):
        return Status.ERROR
    if ran and all(ending is Ending.PASSED for ending in ran) and not facts.forbidden:
        return Status.PASSED
    return Status.FAILED


def judge_stage(
    stage: Stage,
    facts: StageFacts,
    *,
    caused_by: str | None = None,
    is_credited: bool = False,
    diagnoses: Mapping[str, Diagnosis] | None = None,
    place: Callable[[str], str] = lambda target: "",
    is_partial: bool = False,
    perhaps: str | None = None,
) -> StageResult:
    """The verdict on one stage; `place` says where in the submission a target's code is.

    A check's points are given in full if every case of it passed, else not at all. For a skipped
    check its stand-in decides, or, where it names none, whether all that ran passed: skipping costs
    nothing and gives nothing away. With `is_credited` all points are given although checks fail,
    as the fault is an earlier stage's alone. With `is_partial` only the points of the checks that
    are there can be had. What a forbidden call costs is taken off by a result of its own, the
    first: so the results always add up to the stage's score.
    """
    worst = {planned: _worst(planned, facts.cases) for planned in facts.planned}
    passed = {planned.id: fact.ending is Ending.PASSED for planned, fact in worst.items()}
    all_passed = status(replace(facts, forbidden=())) is Status.PASSED
    checks = tuple(
        _result(
            planned,
            fact,
            facts.cases,
            passed.get(planned.stand_in or "", all_passed),
            (diagnoses or {}).get(planned.id),
            place,
        )
        for planned, fact in worst.items()
    )
    if is_credited:
        checks = tuple(replace(check, score=check.max_score) for check in checks)
    max_score = sum(check.max_score for check in checks) if is_partial else stage.points
    if facts.forbidden and status(facts) is not Status.NOT_STARTED:
        checks = (_without_forbidden_calls(stage, facts, checks, max_score), *checks)
    return StageResult(
        slug=stage.slug,
        title=stage.title,
        status=status(facts),
        score=_number(sum(check.score for check in checks)),
        max_score=_number(max_score),
        bonus=stage.bonus,
        checks=checks,
        caused_by=caused_by,
        printed=facts.printed,
        is_partial=is_partial,
        perhaps=perhaps,
    )


def judge_untouched(stage: Stage) -> StageResult:
    """The verdict on a stage that was not run, as nothing is written in it."""
    return StageResult(
        slug=stage.slug,
        title=stage.title,
        status=Status.NOT_STARTED,
        score=0,
        max_score=_number(stage.points),
        bonus=stage.bonus,
        checks=(),
    )


def judge_unchecked(stage: Stage, *, is_written: bool) -> StageResult:
    """The verdict on a stage that has no visible check: whether anything is written in it."""
    return StageResult(
        slug=stage.slug,
        title=stage.title,
        status=Status.PASSED if is_written else Status.NOT_STARTED,
        score=0,
        max_score=0,
        bonus=stage.bonus,
        checks=(),
        is_partial=True,
    )


def judge(
    course: Course,
    submission: str,
    device: str,
    stages: Sequence[StageResult],
    notes: Sequence[str] = (),
) -> Report:
    """The report on a submission: scores are sums over the stages, bonus stages apart."""
    core = [stage for stage in stages if not stage.bonus]
    return Report(
        course=course.name,
        submission=submission,
        device=device,
        score=_number(sum(stage.score for stage in core)),
        max_score=_number(sum(stage.max_score for stage in core)),
        bonus=_number(sum(stage.score for stage in stages if stage.bonus)),
        stages=tuple(stages),
        notes=tuple(notes),
    )


def _worst(planned: PlannedCheck, facts: Iterable[CaseFact]) -> CaseFact:
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


def _result(
    planned: PlannedCheck,
    fact: CaseFact,
    facts: Iterable[CaseFact],
    earned_if_skipped: bool,
    diagnosis: Diagnosis | None,
    place: Callable[[str], str],
) -> CheckResult:
    outcome = _OUTCOMES[fact.ending]
    earned = outcome is Outcome.PASSED or (outcome is Outcome.SKIPPED and earned_if_skipped)
    return CheckResult(
        id=planned.id,
        title=planned.title,
        outcome=outcome,
        score=_number(planned.points) if earned else 0,
        max_score=_number(planned.points),
        message=fact.message + (place(fact.target) if fact.ending in _WITHOUT_LINES else ""),
        diagnosis=diagnosis if outcome is Outcome.FAILED else None,
        seconds=sum(other.seconds for other in facts if other.case.check == planned.id),
    )


def _without_forbidden_calls(
    stage: Stage, facts: StageFacts, checks: Sequence[CheckResult], max_score: float
) -> CheckResult:
    """What the forbidden calls cost, and which they are: never more than the checks have earned."""
    cost = min(stage.forbidden_cost * max_score, sum(check.score for check in checks))
    first, *more = facts.forbidden
    title = f"Written without {first.name}" + (f" and {len(more)} more" if more else "")
    message = f"Your code calls {first.name}: this stage is to be written without it{first.place}"
    for call in more:
        message += f"\nIt calls {call.name} too{call.place}"
    return CheckResult(
        id=f"{stage.slug}.{_FORBIDDEN}",
        title=title,
        outcome=Outcome.FAILED,
        score=-_number(cost) or 0,
        max_score=0,
        message=message,
    )


def _number(value: float) -> float:
    """Points to two decimals, and as an integer where they are one."""
    rounded = round(value, 2)
    return int(rounded) if rounded == int(rounded) else rounded
