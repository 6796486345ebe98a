"""Symptoms: what a wrong answer has in common with the right one, as a relation of their numbers.

The right answer is the solution's, to the same recorded request. A relation counts only if it holds
for every value in every failing case of a check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from grader.diagnosis.comparison.relations.finding import relation_of, relation_of_numbers
from grader.diagnosis.comparison.relations.pair import Relation
from grader.diagnosis.comparison.replay import Step
from grader.diagnosis.comparison.starts import start_symptom
from grader.diagnosis.comparison.wrong_answer import WrongAnswer, wrong_answer
from grader.misconceptions import Symptom
from grader.run.facts import CaseFact
from grader.types.report import Diagnosis
from grader.types.text import listed

_MOST_VALUES = 1 << 16  # numbers of an answer in which a relation is looked for
_GENERAL = {"dtype": "Your result has the right numbers, but not the expected dtype."}
_LAYERS = (
    ". A layer counts if __init__ sets it under this name, as in self.layer = nn.Linear(4, 4), "
    "and not in a list."
)
LACKING = "symptom:lacking"  # its id
CHANGED = "symptom:changed"
_IN_PLACE = (
    "The call changes an argument. Methods that end in _, out= and assignments such as += and "
    "x[0] = act in place."
)
_FEW = 3  # names that the message lists


def symptom_of(
    cases: Sequence[tuple[CaseFact, Sequence[Step]]],
    solution: Callable[[str], Any],
    own: Sequence[Symptom] = (),
) -> Diagnosis | None:
    """The symptom of a check, if it has one.

    `cases` are its failing cases, each with its steps. `own` are the stage's symptoms, which come
    before the kit's.
    """
    seen = [each for fact, steps in cases if (each := wrong_answer(fact, steps, solution))]
    starts = [each.start for each in seen if each.start is not None]
    lacking = [each.lacking for each in seen if each.lacking]
    if not seen or len(seen) < len(cases):
        return None
    if len(starts) == len(seen):
        return _told(start_symptom(starts))
    if len(lacking) == len(seen):
        return _lacking(lacking[0])
    if not all(each.is_comparable for each in seen):
        return None
    return (
        _of_the_author(seen, own)
        or _beside_the_numbers(seen)
        or _between_numbers(seen)
        or _between_arrays(seen)
        or _changed(seen)
        or _only_wrong(seen)
    )


def _told(found: tuple[str, str] | None) -> Diagnosis | None:
    return found and Diagnosis(f"symptom:{found[0]}", found[1])


def _of_the_author(seen: Sequence[WrongAnswer], own: Sequence[Symptom]) -> Diagnosis | None:
    if any(each.is_telling for each in seen):
        for symptom in own:
            if all(each.has(symptom) for each in seen):
                return Diagnosis(f"symptom:{symptom.id}", symptom.says, symptom.hint)
    return None


def _beside_the_numbers(seen: Sequence[WrongAnswer]) -> Diagnosis | None:
    found = [told for each in seen if (told := each.beside_the_numbers()) is not None]
    ids, texts = {id for id, _ in found}, {text for _, text in found}
    if len(found) < len(seen) or len(ids) > 1:
        return None
    id, text = found[0]
    return _told((id, text if len(texts) == 1 else _GENERAL.get(id, text)))


def _between_numbers(seen: Sequence[WrongAnswer]) -> Diagnosis | None:
    numbers = [each.numbers for each in seen if each.numbers is not None]
    return _related(relation_of_numbers(numbers)) if len(numbers) == len(seen) else None


def _between_arrays(seen: Sequence[WrongAnswer]) -> Diagnosis | None:
    pairs = sorted(filter(None, map(WrongAnswer.pair, seen)), key=lambda pair: pair.got.size)
    if len(pairs) < len(seen) or pairs[0].got.size > _MOST_VALUES:
        return None
    return _related(relation_of(pairs))


def _related(found: Relation | None) -> Diagnosis | None:
    return _told((found.id, found.text)) if found is not None else None


def _changed(seen: Sequence[WrongAnswer]) -> Diagnosis | None:
    return Diagnosis(CHANGED, _IN_PLACE) if all(each.changes_arguments for each in seen) else None


def _only_wrong(seen: Sequence[WrongAnswer]) -> Diagnosis | None:
    only = [alone for each in seen if (alone := each.only_wrong()) is not None]
    if len(only) < len(seen):
        return None
    place, names = max(only, key=lambda each: len(each[1]))
    if any(not set(fewer) <= set(names) for _, fewer in only):
        return None
    text = f"Only {listed(names)} {'is' if len(names) == 1 else 'are'} wrong."
    return _told((f"only-wrong:{place}", text))


def _lacking(names: Sequence[str]) -> Diagnosis:
    rest = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    text = f"Your module lacks {', '.join(names[:_FEW]) if rest else listed(names)}{rest}"
    has_layers = not any(name.endswith("weight") for name in names)
    return Diagnosis(LACKING, text + (", which __init__ should make." if has_layers else _LAYERS))
