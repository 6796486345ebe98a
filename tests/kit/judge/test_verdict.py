"""From facts to a report: every ending has its outcome, and nothing that is lost is passed."""

from dataclasses import replace
from pathlib import Path

import pytest

from grader.judge.blame import Blame
from grader.judge.status import status
from grader.judge.verdict import judge, judge_stage, judge_untouched
from grader.run.facts import Case, CaseFact, Ending, ForbiddenCall, PlannedCheck, StageFacts
from grader.types.course import Course, Limits, Stage
from grader.types.report import (
    EARLIER,
    CheckResult,
    Diagnosis,
    Outcome,
    Report,
    StageResult,
    Status,
)

P, W, N, S, B, T, C = (
    *(Ending.PASSED, Ending.WRONG, Ending.NOT_WRITTEN, Ending.SKIPPED),
    *(Ending.BROKEN, Ending.TIMED_OUT, Ending.CRASHED),
)


def stage(slug: str = "one", points: float = 10, *, bonus: bool = False) -> Stage:
    return Stage(slug, slug.title(), points, bonus, (), (), Path())


def planned(
    name: str, *, points: float = 5, cases: int = 1, stand_in: str | None = None
) -> PlannedCheck:
    return PlannedCheck(
        id=f"one.{name}",
        title=f"Title of {name}",
        points=points,
        cases=tuple(Case(f"one.{name}[{number}]", f"one.{name}") for number in range(cases)),
        stand_in=stand_in and f"one.{stand_in}",
    )


def facts_of(check: PlannedCheck, *endings: Ending | None) -> list[CaseFact]:
    """A fact for each case of a check; None for a case that was lost."""
    return [
        CaseFact(case, ending, f"message {number}", seconds=1 + number)
        for number, (case, ending) in enumerate(zip(check.cases, endings, strict=True))
        if ending is not None
    ]


def stage_facts(*checks: tuple[PlannedCheck, list[CaseFact]]) -> StageFacts:
    return StageFacts(
        tuple(check for check, _ in checks),
        tuple(fact for _, facts in checks for fact in facts),
        printed="printed",
    )


def only(*endings: Ending | None) -> CheckResult:
    """The result of a stage's only check, with a case for each ending."""
    check = planned("a", cases=len(endings))
    (result,) = judge_stage(stage(), stage_facts((check, facts_of(check, *endings)))).checks
    return result


def status_of(*endings: Ending | None) -> Status:
    """The status of a stage whose checks have one case each, of these endings."""
    checks = [planned(str(number)) for number in range(len(endings))]
    pairs = [(c, facts_of(c, e)) for c, e in zip(checks, endings, strict=True)]
    return status(stage_facts(*pairs))


# --- one check -------------------------------------------------------------------------------

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


@pytest.mark.parametrize("ending", Ending, ids=lambda ending: ending.name)
def test_every_ending_has_its_outcome_and_only_one_earns_the_points(ending: Ending) -> None:
    result = only(ending)
    assert result.outcome is OUTCOMES[ending]
    assert result.max_score == 5
    assert result.score == (5 if ending is Ending.PASSED else 0)


@pytest.mark.parametrize(
    "endings, outcome, message",
    [
        ((P, P, P), Outcome.PASSED, "message 0"),
        ((P, W, P), Outcome.FAILED, "message 1"),
        ((P, W, B), Outcome.FAILED, "message 1"),
        ((P, B, W), Outcome.ERROR, "message 1"),
        ((T, Ending.NOT_RUN, Ending.NOT_RUN), Outcome.TIMEOUT, "message 0"),
        ((P, C, Ending.NOT_RUN), Outcome.FAILED, "message 1"),
        ((N, N, W), Outcome.FAILED, "message 2"),
        ((N, P, N), Outcome.FAILED, "message 0"),
        ((S, P, S), Outcome.PASSED, "message 1"),
        ((S, S, W), Outcome.FAILED, "message 2"),
        ((S, S, S), Outcome.SKIPPED, "message 0"),
        ((None, P, P), Outcome.ERROR, "The check gave no answer"),
        ((P, P, None), Outcome.ERROR, "The check gave no answer"),
        ((W, None, P), Outcome.FAILED, "message 0"),
        ((None, None, None), Outcome.ERROR, "The check gave no answer"),
        ((S, None, P), Outcome.ERROR, "The check gave no answer"),
    ],
    ids=str,
)
def test_the_first_case_that_did_not_pass_decides_its_check(
    endings: tuple[Ending | None, ...], outcome: Outcome, message: str
) -> None:
    result = only(*endings)
    assert (result.outcome, result.message) == (outcome, message)
    assert result.score == (5 if outcome is Outcome.PASSED else 0)


def test_the_order_is_the_planned_one_however_the_facts_came() -> None:
    check = planned("a", cases=3)
    facts = facts_of(check, P, W, W)
    (result,) = judge_stage(stage(), stage_facts((check, facts[::-1]))).checks
    assert result.message == "message 1"


def test_what_fails_only_because_of_an_earlier_stage_is_told_last() -> None:
    check = planned("a", cases=3)
    first, *others = facts_of(check, W, N, W)
    facts = [replace(first, way=EARLIER), *others]
    for decides in ("message 2", "message 1"):
        (result,) = judge_stage(stage(), stage_facts((check, facts))).checks
        assert result.message == decides
        facts[2] = replace(facts[2], way=EARLIER)


def test_a_fact_that_nobody_planned_counts_for_nothing() -> None:
    check, other = planned("a"), planned("b")
    result = judge_stage(stage(), stage_facts((check, [*facts_of(other, P), *facts_of(check, W)])))
    assert [check.id for check in result.checks] == ["one.a"] and result.score == 0
    lost = judge_stage(stage(), stage_facts((check, facts_of(other, P))))
    assert lost.status is Status.ERROR and lost.score == 0


def test_a_case_of_another_check_does_not_stand_for_a_lost_one() -> None:
    check = planned("a")
    forged = CaseFact(Case("one.a[0]", "one.b"), P)
    assert judge_stage(stage(), stage_facts((check, [forged]))).score == 0


def test_a_check_carries_its_title_and_the_time_of_all_its_cases() -> None:
    result = only(P, W, P)
    assert (result.id, result.title, result.seconds) == ("one.a", "Title of a", 6)


# --- one stage -------------------------------------------------------------------------------


STANDS = {
    Status.PASSED: [(P, P), (P, S)],
    Status.FAILED: [(P, W), (W, T), (T, T), (C,), (S, S), (), (N, P), (N, W), (N, T)],
    Status.NOT_STARTED: [(N, N), (N, S)],
    Status.ERROR: [(N, B), (P, B), (W, B), (P, None), (N, None), (None, None)],
}


@pytest.mark.parametrize(
    "endings, expected", [(one, status) for status, all in STANDS.items() for one in all], ids=str
)
def test_where_a_stage_stands(endings: tuple[Ending | None, ...], expected: Status) -> None:
    assert status_of(*endings) is expected


def test_one_case_beyond_the_stub_makes_a_stage_started() -> None:
    check = planned("a", cases=2)
    assert status(stage_facts((check, facts_of(check, N, N)))) is Status.NOT_STARTED
    assert status(stage_facts((check, facts_of(check, N, W)))) is Status.FAILED


def test_points_are_given_check_by_check() -> None:
    checks = [planned("a", points=3), planned("b", points=2.5), planned("c", points=4.5)]
    endings = [P, W, P]
    pairs = [(c, facts_of(c, e)) for c, e in zip(checks, endings, strict=True)]
    result = judge_stage(stage(), stage_facts(*pairs))
    assert [check.score for check in result.checks] == [3, 0, 4.5]
    assert (result.score, result.max_score, result.status) == (7.5, 10, Status.FAILED)


def test_points_are_round_numbers() -> None:
    checks = [planned(str(number), points=0.1) for number in range(3)]
    result = judge_stage(stage(points=0.3), stage_facts(*[(c, facts_of(c, P)) for c in checks]))
    assert result.score == 0.3
    whole = judge_stage(stage(points=10.0), stage_facts((checks[0], facts_of(checks[0], P))))
    assert str(whole.max_score) == "10"


@pytest.mark.parametrize(
    "stand_in, endings, earned",
    [
        (None, (P, P), 5),  # all that ran passed
        (None, (P, W), 0),
        (None, (P, B), 0),
        (None, (P, S), 5),
        ("a", (P, W), 5),  # the stand-in alone decides
        ("a", (W, P), 0),
        ("a", (T, P), 0),
        ("a", (S, P), 0),
        ("a", (None, P), 0),
        ("b", (W, P), 5),
    ],
    ids=str,
)
def test_a_skipped_check_costs_nothing_and_gives_nothing_away(
    stand_in: str | None, endings: tuple[Ending | None, Ending | None], earned: float
) -> None:
    a, b, skipped = planned("a"), planned("b"), planned("gpu", stand_in=stand_in)
    pairs = [(a, facts_of(a, endings[0])), (b, facts_of(b, endings[1]))]
    result = judge_stage(stage(), stage_facts(*pairs, (skipped, facts_of(skipped, S))))
    assert result.checks[-1].outcome is Outcome.SKIPPED
    assert result.checks[-1].score == earned


def test_a_stand_in_decides_for_skipped_checks_only() -> None:
    a, gpu = planned("a"), planned("gpu", stand_in="a")
    result = judge_stage(stage(), stage_facts((a, facts_of(a, P)), (gpu, facts_of(gpu, W))))
    assert [check.score for check in result.checks] == [5, 0]


def test_a_diagnosis_is_shown_at_failed_checks_only() -> None:
    found = Diagnosis("x", "You ...", 2)
    checks = [planned(str(number)) for number in range(4)]
    endings = [W, P, T, B]
    facts = stage_facts(*[(c, facts_of(c, e)) for c, e in zip(checks, endings, strict=True)])
    diagnoses = {check.id: found for check in checks}
    result = judge_stage(stage(), facts, Blame(cause="zero"), diagnoses=diagnoses)
    assert [check.diagnosis for check in result.checks] == [found, None, None, None]
    assert (result.caused_by, result.printed) == ("zero", "printed")


# --- the report ------------------------------------------------------------------------------


def result_of(
    slug: str, score: float, maximum: float, state: Status, *, bonus: bool = False
) -> StageResult:
    return StageResult(slug, slug, state, score, maximum, bonus, ())


def report_of(*results: StageResult) -> Report:
    course = Course("A course", "Title", Path(), (), Limits(), ())
    return judge(course, "exercises", "cpu", results, ["seed 1"])


def test_bonus_points_are_counted_apart() -> None:
    report = report_of(
        result_of("a", 10, 10, Status.PASSED),
        result_of("b", 2.5, 5, Status.FAILED),
        result_of("more", 3, 4, Status.FAILED, bonus=True),
        result_of("most", 1, 4, Status.PASSED, bonus=True),
    )
    assert (report.score, report.max_score, report.bonus) == (12.5, 15, 4)
    assert [stage.slug for stage in report.stages] == ["a", "b", "more", "most"]
    assert (report.course, report.submission, report.device) == ("A course", "exercises", "cpu")
    assert report.notes == ("seed 1",)


@pytest.mark.parametrize("state", Status, ids=lambda state: state.name)
def test_a_report_is_passed_when_every_core_stage_is(state: Status) -> None:
    core = report_of(result_of("a", 1, 1, Status.PASSED), result_of("b", 0, 1, state))
    assert core.passed is (state is Status.PASSED)
    bonus = report_of(result_of("a", 1, 1, Status.PASSED), result_of("b", 0, 1, state, bonus=True))
    assert bonus.passed


def test_of_a_students_copy_only_the_points_of_its_checks_can_be_had() -> None:
    check = planned("a", points=3)
    result = judge_stage(stage(), stage_facts((check, facts_of(check, P))), Blame(is_partial=True))
    assert (result.score, result.max_score, result.is_partial) == (3, 3, True)
    course = Course("A course", "Title", Path(), (), Limits(), ())
    report = judge(course, "nb", "cpu", [result])
    assert (report.score, report.max_score, report.is_partial) == (3, 3, True)


@pytest.mark.parametrize("is_written, status", [(True, "passed"), (False, "not_started")])
def test_a_stage_without_a_visible_check_gives_and_costs_nothing(
    is_written: bool, status: str
) -> None:
    result = judge_stage(stage(), StageFacts((), ()), Blame(is_partial=True, is_written=is_written))
    assert (result.status.value, result.score, result.max_score) == (status, 0, 0)


def test_a_stage_that_is_credited_has_its_points_and_keeps_its_cause() -> None:
    one, other = planned("a", points=2), planned("b", points=3)
    facts = stage_facts((one, facts_of(one, P)), (other, facts_of(other, W)))
    result = judge_stage(
        stage(), facts, Blame(cause="zero", credited=frozenset({one.id, other.id}))
    )
    assert (result.score, result.status, result.caused_by) == (5, Status.FAILED, "zero")
    assert [check.score for check in result.checks] == [2, 3]


CALL = ForbiddenCall("paper.scissors.cut", "\n  fold.py, line 3, in fold\n    cut(sheet)")


@pytest.mark.parametrize(
    ("cost", "endings", "left"),
    [
        (1, (P, P), 0),
        (1, (P, W), 0),  # it takes no more than there is
        (0.25, (P, P), 7.5),
        (0.25, (P, W), 2.5),
        (0, (P, P), 10),
        (1 / 3, (P, P), 6.67),
        (1, (W, W), 0),
    ],
)
def test_a_forbidden_call_costs_its_share(
    cost: float, endings: tuple[Ending, Ending], left: float
) -> None:
    pairs = [
        (c, facts_of(c, e)) for c, e in zip((planned("a"), planned("b")), endings, strict=True)
    ]
    facts = replace(stage_facts(*pairs), forbidden=(CALL,))
    result = judge_stage(replace(stage(), forbidden_cost=cost), facts)
    assert (result.status, result.score, result.max_score) == (Status.FAILED, left, 10)
    assert sum(check.score for check in result.checks) == pytest.approx(left)
    first, *others = result.checks
    assert (first.id, first.outcome, first.max_score) == ("one.forbidden-call", Outcome.FAILED, 0)
    assert first.title == "Written without paper.scissors.cut"
    assert first.message == (
        "Your code calls paper.scissors.cut: write this stage without it\n"
        "  fold.py, line 3, in fold\n    cut(sheet)"
    )
    assert [check.score for check in others] == [5 if ending is P else 0 for ending in endings]


def test_every_forbidden_call_is_named_and_costs_nothing_more() -> None:
    check = planned("a", points=10)
    calls = (CALL, ForbiddenCall("paper.glue"))
    facts = replace(stage_facts((check, facts_of(check, P))), forbidden=calls)
    result = judge_stage(replace(stage(), forbidden_cost=0.5), facts)
    assert (result.score, result.checks[0].score) == (5, -5)
    assert result.checks[0].title == "Written without paper.scissors.cut and 1 more"
    assert result.checks[0].message.endswith("cut(sheet)\nIt calls paper.glue too")


def test_what_is_skipped_is_not_lost_by_a_forbidden_call_as_well() -> None:
    a, gpu = planned("a", points=8), planned("gpu", points=2)
    facts = stage_facts((a, facts_of(a, P)), (gpu, facts_of(gpu, S)))
    result = judge_stage(replace(stage(), forbidden_cost=0.5), replace(facts, forbidden=(CALL,)))
    assert result.score == 5


def test_a_forbidden_call_where_only_the_visible_checks_count() -> None:
    check = planned("a", points=4)
    facts = replace(stage_facts((check, facts_of(check, P))), forbidden=(CALL,))
    result = judge_stage(replace(stage(), forbidden_cost=0.5), facts, Blame(is_partial=True))
    assert (result.score, result.max_score, result.status) == (2, 4, Status.FAILED)


def test_an_untouched_stub_calls_nothing() -> None:
    check = planned("a")
    facts = replace(stage_facts((check, facts_of(check, N))), forbidden=(CALL,))
    result = judge_stage(stage(), facts)
    assert (result.status, len(result.checks)) == (Status.NOT_STARTED, 1)


def test_a_stage_that_was_not_run_is_not_started_and_has_its_points_before_it() -> None:
    result = judge_untouched(stage(points=7, bonus=True))
    assert (result.status, result.score, result.max_score) == (Status.NOT_STARTED, 0, 7)
