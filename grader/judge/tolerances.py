"""Is there room on both sides of each tolerance? From how far off right and wrong answers were.

Right answers are to stay well within a tolerance, and a wrong one that differs by finite numbers is
to come out well beyond it. A NaN, a shape or an error says nothing about a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from grader.run.facts import StageFacts
from grader.types.proof import Comparison, ToleranceProof

MOST_USED = 0.5  # of a tolerance, by a right answer
LEAST_BEYOND = 2.0  # tolerances, of a wrong answer that nothing else in the check gives away
HARDLY_USED = 0.001  # where no wrong answer comes near: is it there for nothing?


@dataclass(frozen=True)
class Spot:
    """A check and a way in which it compares; one that follows from the numbers has no text."""

    check: str
    kind: str
    tolerance: str


Shares = Mapping[Spot, Comparison]


def shares(facts: StageFacts) -> dict[Spot, Comparison]:
    """The comparison of each spot that was furthest off."""
    return largest((fact.case.check, each) for fact in facts.cases for each in fact.compared)


def largest(found: Iterable[tuple[str, Comparison]]) -> dict[Spot, Comparison]:
    """The furthest off of the comparisons of each spot; each comes with its check's id."""
    most: dict[Spot, Comparison] = {}
    for check, one in found:
        spot = Spot(check, one.kind, one.tolerance if one.kind == "close" else "")
        if spot not in most or one.share > most[spot].share:
            most[spot] = one
    return most


def tolerance_proofs(right: Shares, wrong: Mapping[str, Shares]) -> Iterator[ToleranceProof]:
    """The room of every tolerance that right answers meet; `wrong` is by misconception."""
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
        )


def tolerance_problems(proofs: Iterable[ToleranceProof]) -> Iterator[str]:
    """What is wrong with the tolerances."""
    for proof in proofs:
        where = f"{proof.check}: the tolerance {proof.tolerance}"
        if proof.right > MOST_USED:
            yield f"{where} is tight: right answers take {proof.right:.0%} of it"
        if proof.wrong is not None and proof.wrong < LEAST_BEYOND:
            yield f"{where} is wide: {proof.nearest} is off by only {proof.wrong:.2g} of it"
        if proof.wrong is None and proof.right < HARDLY_USED and not proof.is_usual:
            yield (
                f"{where} is wide: right answers take {proof.right:.1g} of it, and no "
                "misconception exceeds it"
            )
