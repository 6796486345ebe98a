"""Why each check of a stage fails: the name of a known mistake, else a symptom."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from grader.diagnosis.comparison.names import explanations, named
from grader.diagnosis.comparison.replay import Record, Replays, Step
from grader.diagnosis.sizes import sizes_that_do_not_fit
from grader.misconceptions import Known, Symptom
from grader.run.facts import CaseFact, StageFacts
from grader.types.report import Diagnosis


def diagnose(
    facts: StageFacts, known: Known, solution: Callable[[str], Any], replays: Replays | None = None
) -> dict[str, Diagnosis]:
    """The diagnoses of a stage's failing checks, by the check's id; not every check has one.

    `known` are the stage's misconceptions and symptoms. `solution` returns the right implementation
    of an entry point's name.
    """
    record = Record(facts, solution, replays or Replays())
    found = named(record, known.misconceptions, explanations(record, known.misconceptions))
    for check, failing in record.failing().items():
        if check not in found and not record.is_of_tests:
            cases = [(record.cases[case], _unaccepted(record, case)) for case in failing]
            symptom = _symptom(cases, solution, known.symptoms)
            if symptom is not None:
                found[check] = symptom
    return {**sizes_that_do_not_fit(facts.cases), **found}


def _unaccepted(record: Record, case: str) -> list[Step]:
    """The steps of a case, without right answers in float64 where a check that passed accepts it.

    The last step stays in any case, because after it the check failed.
    """
    steps = record.steps(case)
    return [
        step
        for step in steps
        if step is steps[-1] or not (step.is_only_wider and record.accepts_wider(step.entry))
    ]


def _symptom(
    cases: Sequence[tuple[CaseFact, Sequence[Step]]],
    solution: Callable[[str], Any],
    own: Sequence[Symptom],
) -> Diagnosis | None:
    from grader.diagnosis.comparison.symptoms import (
        symptom_of,  # imports numpy, which not every course needs
    )

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return symptom_of(cases, solution, own)
    except Exception:  # noqa: BLE001 - a strange answer must not change the verdict
        return None
