"""results.json and the scripts of an autograder, as data.

Gradescope itself is stood in for in test_release.py.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.channels.gradescope import WHEN, refusal, results, run_script, setup_script
from grader.types.course import Course, Limits, Stage
from grader.types.report import CheckResult, Diagnosis, Outcome, Report, StageResult, Status

SEED = "Seed of the random inputs: 7."


def a_stage(slug: str, *visible: str, bonus: bool = False) -> Stage:
    return Stage(slug, slug.title(), 4, bonus, (), (), Path(), visible)


COURSE = Course(
    "paper-birds",
    "Paper birds",
    Path(),
    (),
    Limits(),
    (a_stage("fold", "sit", "see"), a_stage("nest", bonus=True)),
)


def check(id: str, outcome: Outcome, score: float = 0, **more: Any) -> CheckResult:
    return CheckResult(id, "It holds", outcome, score, 2, **more)


def graded(*checks: CheckResult, status: Status = Status.FAILED, **more: Any) -> StageResult:
    slug = checks[0].id.split(".")[0]
    score = sum(c.score for c in checks)
    bonus = COURSE.stage(slug).bonus
    return StageResult(slug, slug.title(), status, score, 4, bonus, checks, **more)


def report(*stages: StageResult, score: float = 2, bonus: float = 0) -> Report:
    return Report("paper-birds", "mine", "cpu", score, 4, bonus, stages, ("seed 7",))


def entries(of: Report, when: str = "published") -> dict[str, dict[str, Any]]:
    found = results(of, COURSE, when, 1.25)["tests"]
    json.dumps(found)
    return {test["number"]: test for test in found}


SIT = check("fold.sit", Outcome.PASSED, 2)
FLY = check(
    "fold.fly",
    Outcome.FAILED,
    message="fell from 3",
    diagnosis=Diagnosis("no_wings", "You fold no wings.", 3),
)


def test_a_lost_point_comes_with_its_reason_its_cause_and_the_hint_to_ask_for() -> None:
    fly = entries(report(graded(SIT, FLY)))["1.2"]
    assert fly["output"] == (
        "fell from 3\n\nLikely: You fold no wings.\n\nA hint: grade hint fold 3"
    )
    assert (fly["score"], fly["max_score"], fly["status"]) == (0, 2, "failed")
    assert fly["name"] == "Fold: It holds" and fly["tags"] == ["fold"]


@pytest.mark.parametrize("when, word", WHEN.items())
def test_hidden_checks_are_shown_when_the_instructor_wants(when: str, word: str) -> None:
    tests = entries(report(graded(SIT, FLY)), when)
    assert tests["1.1"]["visibility"] == "visible"
    assert tests["1.2"]["visibility"] == word


def test_what_all_may_read_at_once_says_nothing_of_hidden_checks_but_how_many() -> None:
    lost = results(report(graded(SIT, FLY)), COURSE, "published", 1.25)
    kept = results(report(graded(SIT, check("fold.fly", Outcome.PASSED, 2))), COURSE, "due", 1.25)
    assert lost["output"].startswith("Your visible checks pass; 1 more check ran, shown when the")
    told = "Your visible checks pass; 1 more check ran, shown after the due date."
    assert kept["output"] == f"{told}\n{SEED}"
    assert lost["stdout_visibility"] == "hidden"
    assert lost["execution_time"] == 1.2


def test_visible_checks_that_fail_are_counted_and_skipped_ones_are_not() -> None:
    skipped = check("fold.see", Outcome.SKIPPED, 2, message="it is dark")
    said = results(report(graded(SIT, skipped)), COURSE, "never", 1)["output"]
    assert said == f"Your visible checks pass.\n{SEED}"
    failed = check("fold.see", Outcome.TIMEOUT, message="It took too long.")
    said = results(report(graded(SIT, failed)), COURSE, "never", 1)["output"]
    assert said == f"1 of your 2 visible checks pass.\n{SEED}"
    skipped_test = entries(report(graded(SIT, skipped)))["1.2"]
    assert (skipped_test["score"], skipped_test["status"]) == (2, "passed")
    assert skipped_test["output"] == "Skipped: it is dark"


def test_what_grading_the_submission_showed_is_told_at_once() -> None:
    of = replace(report(graded(SIT)), notes=("seed 7", "Is it the right file?"))
    said = results(of, COURSE, "published", 1, ["It was renamed."])["output"]
    assert said.startswith("It was renamed.\nIs it the right file?\nYour visible checks pass.")


def test_another_stage_to_mend_first_is_named() -> None:
    fly = entries(report(graded(SIT, FLY, caused_by="fold")))["1.2"]
    assert fly["output"].startswith("Fix fold first: this stage fails because of it.")
    assert "A hint" not in fly["output"]


def test_the_score_is_never_more_than_the_maximum() -> None:
    of = report(graded(SIT), graded(check("nest.x", Outcome.PASSED, 2)), score=4.000001, bonus=2)
    data = results(of, COURSE, "published", 1)
    assert data["score"] == 4
    assert data["extra_data"] == {"max_score": 4, "bonus": 2, "notes": ["seed 7"]}
    bonus = data["tests"][-1]
    assert "score" not in bonus and bonus["status"] == "passed"
    assert bonus["output"] == "Bonus: 2 of 2 points, not counted in the score."


@pytest.mark.parametrize(
    "broken",
    [graded(SIT, check("fold.fly", Outcome.ERROR)), graded(SIT, status=Status.ERROR)],
    ids=["a check", "a stage"],
)
def test_the_graders_own_failure_is_no_verdict(broken: StageResult) -> None:
    with pytest.raises(ValueError, match="fold: the grader could not run its checks"):
        results(report(broken), COURSE, "published", 1)


def test_nothing_that_a_student_wrote_is_markup() -> None:
    loud = check("fold.fly", Outcome.FAILED, message="<b>\x1b[31m" + "x" * 20_000)
    data = results(report(graded(loud)), COURSE, "published", 1)
    formats = {data["output_format"], data["test_output_format"], data["test_name_format"]}
    assert formats | {test["output_format"] for test in data["tests"]} == {"text"}
    assert "\\x1b[31m" in data["tests"][0]["output"]
    assert len(data["tests"][0]["output"]) <= 10_000


def test_what_cannot_be_read_gets_nothing_and_says_why() -> None:
    data = refusal("It is \x07 no notebook", 0.1)
    assert data["score"] == 0
    assert data["output"] == "It is \\x07 no notebook\nNo points. Fix that and submit again."
    assert data["tests"][0]["visibility"] == "visible"


def test_a_name_with_a_quote_stays_one_word_of_the_scripts() -> None:
    assert "--assignment 'it'\"'\"'s' --hidden due --minutes 8 " in run_script("it's", "due", 8.0)
    assert "The autograder for 'a b' is ready" in setup_script(["numpy"], "a b")
