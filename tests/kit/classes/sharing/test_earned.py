"""What is learnt of one answer holds for who hands in the same, if it was run by itself."""

import os
from collections.abc import Iterator

import pytest

from grader.classes.sharing.earned import Earned
from grader.types.report import CheckResult, Outcome, StageResult, Status


def verdict(status: Status = Status.PASSED, score: float = 3) -> StageResult:
    check = CheckResult("wings.shape", "The shape", Outcome.PASSED, score, 3, seconds=0.5)
    return StageResult("wings", "Wings", status, score, 3, False, (check,), printed="hello")


@pytest.fixture(params=[False, True], ids=["alone", "shared"])
def earned(request: pytest.FixtureRequest) -> Iterator[Earned]:
    with Earned(shared=request.param) as earned:
        yield earned


def test_a_verdict_holds_once_it_was_reached_alone(earned: Earned) -> None:
    assert earned.take("key", verdict(), alone=False) is None
    assert earned.result("key", "wings") is None
    assert earned.asks_for_proof("key") and not earned.asks_for_proof("other")
    proven = earned.take("key", verdict(), alone=True)
    assert earned.result("key", "wings") == proven is not None
    assert proven.score == 3 and proven.printed == "" and proven.checks[0].seconds == 0
    assert earned.result("other", "wings") is None


def test_what_is_not_begun_is_known_too(earned: Earned) -> None:
    earned.take("right", verdict(), alone=True)
    earned.take("stub", verdict(Status.NOT_STARTED, 0), alone=True)
    found = earned.result("stub", "wings"), earned.result("right", "wings")
    assert [each and each.status for each in found] == [Status.NOT_STARTED, Status.PASSED]


@pytest.mark.parametrize("status", [Status.FAILED, Status.ERROR])
@pytest.mark.parametrize("score", [0, 2, 3])
def test_what_may_speak_of_a_line_is_never_taken_over(
    earned: Earned, status: Status, score: float
) -> None:
    assert earned.take("key", verdict(status, score), alone=False) is None
    assert not earned.asks_for_proof("key")


def test_what_fails_alone_is_not_tried_again(earned: Earned) -> None:
    earned.take("key", verdict(), alone=False)
    assert earned.take("key", verdict(Status.FAILED, 2), alone=True) is None
    assert not earned.asks_for_proof("key") and earned.result("key", "wings") is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("earned", [True], indirect=True)
def test_forked_processes_tell_each_other(earned: Earned) -> None:
    for number in range(20):
        child = os.fork()
        if child == 0:
            earned.take(f"key {number}", verdict(), alone=number % 2 == 0)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert [earned.asks_for_proof(f"key {number}") for number in range(20)] == [False, True] * 10
    assert earned.result("key 0", "wings") is None  # this process has no verdict to show yet
    earned.take("key 1", verdict(), alone=True)
    assert all(earned.result(f"key {number}", "wings") for number in (0, 1, 2, 18))
