"""Facts -> Report. Pure: nothing here runs, reads or prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from grader.judge.blame import NO_BLAME, Blame
from grader.judge.status import OUTCOMES, deciding_facts, status
from grader.run.facts import CaseFact, Ending, PlannedCheck, StageFacts
from grader.types.course import Course, Stage
from grader.types.report import (
    FORBIDDEN,
    NOT_WRITTEN,
    REFUSED,
    CheckResult,
    Diagnosis,
    Outcome,
    Report,
    StageResult,
    Status,
)
from grader.types.text import safe

# Endings that name no line of the learner's by themselves.
_WITHOUT_LINES = (Ending.WRONG, Ending.TIMED_OUT, Ending.CRASHED)
_FORBIDDEN = "forbidden-call"  # no check's own id: a test's name has no hyphen


def judge_stage(
    stage: Stage,
    facts: StageFacts,
    blame: Blame = NO_BLAME,
    *,
    diagnoses: Mapping[str, Diagnosis] | None = None,
    place: Callable[[str], str] = lambda target: "",
) -> StageResult:
    """The verdict on one stage; `place` says where in the submission a target's code is.

    A check's points are given in full if every case of it passed, else not at all. For a skipped
    check its stand-in decides, or, where it names none, whether all that ran passed: skipping costs
    nothing and gives nothing away. `blame` says whose fault a failure is: the checks that it
    credits get their points although they fail. A student's copy gives only the points of the
    checks that it has. The cost of a forbidden call is a result of its own, the first: so the
    results always add up to the stage's score.
    """
    worst = list(zip(facts.planned, deciding_facts(facts), strict=True))
    passed = {planned.id: fact.ending is Ending.PASSED for planned, fact in worst}
    all_passed = status(replace(facts, forbidden=())) is Status.PASSED
    checks = tuple(
        _result(
            planned,
            fact,
            facts.cases,
            passed.get(planned.stand_in or "", all_passed),
            (diagnoses or {}).get(planned.id),
            (lambda target: "") if blame.cause else place,  # the fault is not in this stage's code
        )
        for planned, fact in worst
    )
    checks = tuple(
        replace(check, score=check.max_score) if check.id in blame.credited else check
        for check in checks
    )
    max_score = sum(check.max_score for check in checks) if blame.is_partial else stage.points
    if facts.forbidden and status(facts) is not Status.NOT_STARTED:
        checks = (_without_forbidden_calls(stage, facts, checks, max_score), *checks)
    reached = status(facts)
    if blame.is_written is not None:
        reached = Status.PASSED if blame.is_written else Status.NOT_STARTED
    return replace(
        judge_untouched(stage),
        status=reached,
        score=_number(sum(check.score for check in checks)),
        max_score=_number(max_score),
        checks=checks,
        caused_by=blame.cause,
        printed=facts.printed,
        is_partial=blame.is_partial,
        perhaps=None if any(check.is_named for check in checks) else blame.perhaps,
    )


def judge_untouched(stage: Stage) -> StageResult:
    """The verdict on a stage that was not run because nothing is written in it."""
    return StageResult(
        slug=stage.slug,
        title=stage.title,
        status=Status.NOT_STARTED,
        score=0,
        max_score=_number(stage.points),
        bonus=stage.bonus,
        checks=(),
        is_exam=stage.is_exam,
    )


def judge_refused(course: Course, submission: str, stages: Sequence[Stage], why: str) -> Report:
    """The report on a submission that cannot be graded: no points, and `why` in every stage."""
    results = [
        replace(
            judge_untouched(stage),
            status=Status.FAILED,
            checks=(
                CheckResult(
                    id=f"{stage.slug}.{REFUSED}",
                    title="The submission can be read",
                    outcome=Outcome.FAILED,
                    score=0,
                    max_score=_number(stage.points),
                    message=safe(why),
                ),
            ),
        )
        for stage in stages
    ]
    return judge(course, submission, "cpu", results)


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
        version=course.version,
    )


def _result(
    planned: PlannedCheck,
    fact: CaseFact,
    facts: Iterable[CaseFact],
    earned_if_skipped: bool,
    diagnosis: Diagnosis | None,
    place: Callable[[str], str],
) -> CheckResult:
    outcome = OUTCOMES[fact.ending]
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
        way=_way(fact),
        size=fact.size,
        hint=planned.hint,
    )


def _way(fact: CaseFact) -> str:
    """How a case failed; if its answer was wrong, the way includes the call's target."""
    if fact.ending is Ending.NOT_WRITTEN:
        return NOT_WRITTEN
    return f"{fact.way}, {fact.target}" if fact.way and fact.ending is Ending.WRONG else fact.way


def _without_forbidden_calls(
    stage: Stage, facts: StageFacts, checks: Sequence[CheckResult], max_score: float
) -> CheckResult:
    """What the forbidden calls cost, and which they are: never more than the checks have earned."""
    cost = min(stage.forbidden_cost * max_score, sum(check.score for check in checks))
    first, *more = facts.forbidden
    title = f"Written without {first.name}" + (f" and {len(more)} more" if more else "")
    message = f"Your code calls {first.name}: write this stage without it{first.place}"
    for call in more:
        message += f"\nIt calls {call.name} too{call.place}"
    return CheckResult(
        id=f"{stage.slug}.{_FORBIDDEN}",
        title=title,
        outcome=Outcome.FAILED,
        score=-_number(cost) or 0,
        max_score=0,
        message=message,
        way=FORBIDDEN,
    )


def _number(value: float) -> float:
    """Points to two decimals, and as an integer if they are one."""
    rounded = round(value, 2)
    return int(rounded) if rounded == int(rounded) else rounded
