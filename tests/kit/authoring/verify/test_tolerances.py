"""Room on both sides of a tolerance: what is near, what is wide, what is tight."""

import math
from dataclasses import replace

import pytest

from grader.authoring.verify.tolerances import (
    is_clear,
    shares,
    tolerance_problems,
    tolerance_proofs,
)
from grader.authoring.verify.types import ToleranceProof
from grader.run.facts import Case, CaseFact, Ending, StageFacts
from grader.types.comparison import Comparison


def facts(*compared: Comparison, check: str = "s.c", ending: Ending = Ending.PASSED) -> StageFacts:
    fact = CaseFact(Case(f"{check}[0]", check), ending, compared=compared)
    return StageFacts((), (fact,))


def close(share: float, tolerance: str = "rtol=0.1, atol=0", is_usual: bool = False) -> Comparison:
    return Comparison("close", tolerance, share, is_usual)


def room(right: float, *wrong: float, is_usual: bool = False) -> ToleranceProof:
    known = {f"m{n}": facts(close(s), ending=Ending.WRONG) for n, s in enumerate(wrong)}
    faint = {id for id, own in known.items() if not is_clear(own)}
    by_id = {id: shares(own) for id, own in known.items()}
    [proof] = tolerance_proofs(shares(facts(close(right, is_usual=is_usual))), by_id, faint)
    return proof


def test_the_largest_of_each_tolerance_counts() -> None:
    found = shares(facts(close(0.1), close(0.3), close(0.2, "rtol=1, atol=0")))
    assert {(spot.tolerance, one.share) for spot, one in found.items()} == {
        ("rtol=0.1, atol=0", 0.3),
        ("rtol=1, atol=0", 0.2),
    }


def test_ranges_of_a_check_are_one_whatever_their_numbers_are() -> None:
    wide, narrow = Comparison("between", "0 to 2", 0.1), Comparison("between", "0 to 1", 0.4)
    [(spot, one)] = shares(facts(wide, narrow)).items()
    assert (spot.tolerance, one) == ("", narrow)


def test_a_right_answer_that_fails_measures_nothing() -> None:
    assert shares(facts(close(7.0), ending=Ending.WRONG), passed=True) == {}


def test_the_nearest_wrong_one_exceeds_the_tolerance_by_finite_numbers() -> None:
    proof = room(0.1, 0.9, 50.0, 4.0, math.inf)
    assert (proof.right, proof.wrong, proof.nearest) == (0.1, 4.0, "m2")
    assert list(tolerance_problems([proof])) == []


@pytest.mark.parametrize(
    "proof, told",
    [
        (room(0.51, 9.0), "is tight: right answers use 51% of it"),
        (room(0.1, 9.0, 1.5), "is wide: m1 is hardly beyond it, and no other check catches it"),
        (room(0.0001), "is wide: right answers use 0.0001 of it, and no misconception is well"),
        (room(0.0001, math.inf), "is wide: right answers use 0.0001 of it"),
    ],
)
def test_too_little_room_is_a_problem(proof: ToleranceProof, told: str) -> None:
    [problem] = tolerance_problems([proof])
    assert told in problem and problem.startswith("s.c: the tolerance rtol=0.1, atol=0 is ")


def test_a_wrong_answer_far_beyond_a_tolerance_is_not_hardly_beyond_it() -> None:
    passing = shares(facts(close(7000.0)))  # the check goes on after its comparison fails
    proofs = tolerance_proofs(shares(facts(close(0.1))), {"m": passing}, {"m"})
    assert list(tolerance_problems(proofs)) == []


@pytest.mark.parametrize("proof", [room(0.5, 2.0), room(0.01), room(0.0, is_usual=True)])
def test_room_on_both_sides_is_none(proof: ToleranceProof) -> None:
    assert list(tolerance_problems([proof])) == []


def test_what_another_check_tells_clearly_may_come_near() -> None:
    near = CaseFact(Case("s.c[0]", "s.c"), Ending.WRONG, compared=(close(1.2),))
    shape = CaseFact(Case("s.d[0]", "s.d"), Ending.WRONG)
    assert not is_clear(StageFacts((), (near,)))
    assert is_clear(StageFacts((), (near, shape)))
    assert is_clear(StageFacts((), (near, replace(near, compared=(close(2.0),)))))
