"""Checks that each tolerance has room on both sides, from the errors of right and wrong answers.

Right answers must stay well within a tolerance, and wrong answers that differ by finite numbers
must be well beyond it. A NaN, a shape or an error says nothing about a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from grader.authoring.verify.types import ToleranceProof
from grader.run.facts import Ending, StageFacts
from grader.types.comparison import Comparison

MOST_USED = 0.5  # the most of a tolerance that a right answer may use
LEAST_BEYOND = 2.0  # tolerances: the least error of a wrong answer that nothing else reveals
HARDLY_USED = 0.001  # a tolerance used less, with no wrong answer near it, may be too wide


@dataclass(frozen=True)
class Spot:
    """A check and one of its comparisons; a tolerance computed from the numbers has no text."""

    check: str
    kind: str
    tolerance: str


Shares = Mapping[Spot, Comparison]


def shares(facts: StageFacts, *, passed: bool = False) -> dict[Spot, Comparison]:
    """The comparison of each spot with the largest error; with `passed`, only of passed cases."""
    cases = [fact for fact in facts.cases if not passed or fact.ending is Ending.PASSED]
    return largest((fact.case.check, each) for fact in cases for each in fact.compared)


def largest(found: Iterable[tuple[str, Comparison]]) -> dict[Spot, Comparison]:
    """The comparison with the largest error of each spot, from pairs of check id and comparison."""
    most: dict[Spot, Comparison] = {}
    for check, one in found:
        spot = Spot(check, one.kind, one.tolerance if one.kind == "close" else "")
        if spot not in most or one.share > most[spot].share:
            most[spot] = one
    return most


def is_clear(facts: StageFacts) -> bool:
    """Whether some check fails by a clear margin, or for another reason than a tolerance."""
    failed = [fact for fact in facts.cases if fact.ending in (Ending.WRONG, Ending.RAISED)]
    most = [max((one.share for one in fact.compared), default=0.0) for fact in failed]
    return any(not 1 < share < LEAST_BEYOND for share in most)


def tolerance_proofs(
    right: Shares, wrong: Mapping[str, Shares], faint: Collection[str]
) -> Iterator[ToleranceProof]:
    """The room of every tolerance that right answers use.

    `wrong` is keyed by misconception; `faint` are those that no check catches clearly.
    """
    for spot, used in right.items():
        beyond = {
            id: own[spot].share
            for id, own in wrong.items()
            if spot in own and 1 < own[spot].share < math.inf
        }
        nearest = min(beyond, key=lambda id: beyond[id], default=None)
        yield ToleranceProof(
            spot.check,
            used.tolerance,
            used.is_usual,
            used.share,
            None if nearest is None else beyond[nearest],
            nearest,
            max(beyond.values(), default=0.0) >= LEAST_BEYOND,
            tuple(id for id in beyond if id in faint and beyond[id] < LEAST_BEYOND),
        )


def tolerance_problems(proofs: Iterable[ToleranceProof]) -> Iterator[str]:
    """A message for each tolerance that is too tight or too wide."""
    for proof in proofs:
        where = f"{proof.check}: the tolerance {proof.tolerance}"
        if proof.right > MOST_USED:
            yield f"{where} is tight: right answers use {proof.right:.0%} of it"
        for id in proof.faint:
            yield f"{where} is wide: {id} is hardly beyond it, and no other check catches it"
        if proof.right < HARDLY_USED and not proof.is_exceeded and not proof.is_usual:
            yield (
                f"{where} is wide: right answers use {proof.right:.1g} of it, and no "
                "misconception is well beyond it"
            )
