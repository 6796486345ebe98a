"""Which known misconception explains a failing check: replay what the checks asked, and compare.

The requests of the checks go to the solution and to each misconception. A message about a
misconception is exactly as strong as its evidence (see `Level`). If another one is equally likely,
neither is named: an unknown mistake must never get a wrong name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from grader.diagnosis.comparison.replay import Record
from grader.diagnosis.comparison.replies import Read
from grader.diagnosis.reserve import NOT_EVERY_CHECK, NOT_EVERYTHING, PERHAPS_NOT_EVERY_CHECK
from grader.misconceptions import Misconception
from grader.types.report import Diagnosis

_TRIES = 200  # looks at a case for a misconception: what a diagnosis may cost


class Level(IntEnum):
    """How far the learner's answers equal those of a misconception.

    `EVERYWHERE` in the stage, known independent mistakes aside. `ORDINARY`: in every ordinary case,
    while an edge case differs; of several such the author's first, as a plain mistake stands before
    its combinations. `CHECK`: throughout one check, while it gives other answers in another.
    `OPEN_CHECK`: so too, while other checks fail for a reason that is not known.
    """

    CHECK = 1
    OPEN_CHECK = 2
    ORDINARY = 3
    EVERYWHERE = 4


_SAID = {
    Level.CHECK: NOT_EVERY_CHECK,
    Level.OPEN_CHECK: PERHAPS_NOT_EVERY_CHECK,
    Level.ORDINARY: NOT_EVERYTHING,
    Level.EVERYWHERE: "",
}


@dataclass
class Tally:
    """How many wrong answers of a case a misconception explains, and how many `ordinary` ones.

    `seen` are those that no exception hides, and `returned` those of the ordinary ones that are no
    exceptions: two mistakes may well end in the same exception. `differs` if it gives another
    answer somewhere, `ordinarily` if it does so in an ordinary one, `hidden` if an exception stands
    where the learner's answer would tell.
    `raised` are exceptions of one type in other words, from two ways to write one mistake or from
    two mistakes, and `raised_ordinary` those of ordinary answers.
    """

    explained: int = 0
    ordinary: int = 0
    seen: int = 0
    returned: int = 0
    differs: bool = False
    ordinarily: bool = False
    hidden: bool = False
    raised: int = 0
    raised_ordinary: int = 0

    def with_raised(self) -> Tally:
        """The exceptions in other words are explained too."""
        explained, ordinary = self.explained + self.raised, self.ordinary + self.raised_ordinary
        return replace(self, explained=explained, ordinary=ordinary)


@dataclass(frozen=True)
class Explanations:
    """The evidence for each misconception that no right answer contradicts.

    `found` gives a tally by the misconception's id and the case's. `deviating` gives, by entry
    point and failing case, how many wrong answers it gave there, and how many ordinary ones.
    """

    found: Mapping[str, Mapping[str, Tally]]
    deviating: Mapping[str, Mapping[str, Tally]]

    def everywhere(self, id: str) -> Mapping[str, Tally] | None:
        """The tallies of a misconception that no answer contradicts."""
        by_case = self.found.get(id, {})
        return None if any(tally.differs for tally in by_case.values()) else by_case


def named(
    record: Record, misconceptions: Sequence[Misconception], explanations: Explanations
) -> dict[str, Diagnosis]:
    """The diagnosis of each failing check that one misconception explains best."""
    by_id = {suspect.id: suspect for suspect in misconceptions}
    levels = _Levels(by_id, explanations)
    diagnoses = {}
    for check, cases in record.failing().items():
        able = [id for id in by_id if id in explanations.found]
        best = _best({id: levels.of(id, cases) for id in able}, explanations)
        if best is not None:
            id, level = best
            diagnoses[check] = Diagnosis(id, by_id[id].says + _SAID[level], by_id[id].hint)
    return diagnoses


class _Levels:
    """How strong the evidence for each misconception is."""

    def __init__(self, by_id: Mapping[str, Misconception], explanations: Explanations) -> None:
        self._by_id = by_id
        self._explanations = explanations

    def of(self, id: str, cases: Sequence[str]) -> Level | None:
        """The level of a misconception in the failing cases of a check; None if it is no reason."""
        by_case = self._explanations.found[id]
        deviating = self._explanations.deviating[self._by_id[id].replaces]
        if not any(by_case[case].explained for case in cases):
            return None
        agrees = self._explanations.everywhere(id) is not None
        if agrees and self._is_covered(self._by_id[id].replaces):
            return Level.EVERYWHERE
        # A wrong answer of a case is left unexplained, or it gives another one there.
        if any(deviating[case].explained > by_case[case].explained for case in cases):
            return None
        if any(by_case[case].ordinarily for case in cases):
            return None
        if self._is_whole(id):
            entry = self._by_id[id].replaces
            alike = [other for other in self._able(entry) if self._is_whole(other)]
            return Level.ORDINARY if alike[0] == id else None
        tallies = [by_case[case] for case in cases]
        is_seen = any(tally.returned or (agrees and tally.seen) for tally in tallies)
        return (Level.OPEN_CHECK if agrees else Level.CHECK) if is_seen else None

    def _able(self, entry: str) -> list[str]:
        """The misconceptions of an entry point that are left, in the author's order."""
        found = self._explanations.found
        return [id for id, each in self._by_id.items() if id in found and each.replaces == entry]

    def _is_whole(self, id: str) -> bool:
        """Whether it explains every ordinary wrong answer, and there is at least one."""
        deviating = self._explanations.deviating[self._by_id[id].replaces]
        tallies = [self._explanations.found[id][case] for case in deviating]
        if self._explanations.everywhere(id) is None and not any(t.returned for t in tallies):
            return False  # two mistakes may well end in the same exception
        ordinary = sum(tally.ordinary for tally in tallies)
        return ordinary > 0 and ordinary == sum(tally.ordinary for tally in deviating.values())

    def _is_covered(self, entry: str) -> bool:
        """Whether known mistakes explain something of every case in which the entry is wrong."""
        covered = {
            case
            for id in self._able(entry)
            for case, tally in (self._explanations.everywhere(id) or {}).items()
            if tally.explained
        }
        wrong = self._explanations.deviating[entry]
        return {case for case, tally in wrong.items() if tally.explained} <= covered


def _best(
    levels: Mapping[str, Level | None], explanations: Explanations
) -> tuple[str, Level] | None:
    """The best of the highest level; None if two explain everything alike.

    The better one has fewer cases in which it gives another answer, then more that it explains.
    Of those that are alike where another mistake shows too, it is the author's first.
    """

    def rank(id: str, level: Level) -> tuple[int, int, int]:
        tallies = explanations.found[id].values()
        differs, explained = (sum(t.differs for t in tallies), sum(t.explained for t in tallies))
        return level, -differs, explained

    ranks = {id: rank(id, level) for id, level in levels.items() if level is not None}
    best = [id for id, each in ranks.items() if each == max(ranks.values())]
    if not best or (len(best) > 1 and explanations.everywhere(best[0]) is not None):
        return None
    return best[0], Level(ranks[best[0]][0])


def explanations(record: Record, misconceptions: Sequence[Misconception]) -> Explanations:
    """Compare every misconception with the record of a stage.

    To be quick, it looks for candidates in one failing case of each check, and compares only these
    with the whole stage. If an entry point is wrong in an ordinary case for an unknown reason, it
    looks for no more candidates in ordinary cases: that reason shows there too.
    """
    by_id = {suspect.id: suspect for suspect in misconceptions}
    found: dict[str, dict[str, Tally]] = {}
    settled: set[str] = set()  # candidates that are found, or contradicted
    unknown: set[str | None] = set()  # entry points that are wrong for such a reason
    tries, most = 0, max(_TRIES, 2 * len(misconceptions))  # to find both of two mistakes
    for case, *_ in record.failing().values():
        if any(by_case[case].explained for by_case in found.values()):
            continue
        deviating = [step for step in record.steps(case) if step.deviates]
        telling = [step for step in deviating if not step.fresh and not step.is_hidden]
        ordinary = {step.entry for step in telling if step.is_ordinary}
        wrong = {step.entry for step in deviating} - (unknown & ordinary)
        for suspect in misconceptions:
            if suspect.id in settled or suspect.replaces not in wrong or tries == most:
                continue
            tries += 1
            tally = _tally(record, case, suspect)
            says_nothing = tally is not None and not tally.explained and not tally.ordinarily
            if says_nothing and not record.is_of_tests:
                continue
            settled.add(suspect.id)
            by_case = _agreement(record, suspect) if tally and not tally.ordinarily else None
            if by_case:
                found[suspect.id] = by_case
        explained = {by_id[id].replaces for id, by_case in found.items() if by_case[case].explained}
        unknown |= ordinary - explained
    wrong_answers = {
        entry: {case: _wrong(record, case, entry) for case in record.failed if found}
        for entry in {suspect.replaces for suspect in misconceptions}
    }
    return Explanations(found, wrong_answers)


def _agreement(record: Record, suspect: Misconception) -> dict[str, Tally] | None:
    """The tally of each case, if most failing cases support it and no right answer contradicts it.

    With another mistake beside it the learner's ordinary answers may be wrong in a third way. A
    mistake of the learner's tests must explain something of every failing case: tests that miss
    much miss also what many a mistake misses. An exception in other words speaks for it if some
    answer does.
    """
    found = {}
    against_it = 0
    for case in record.cases:
        tally = _tally(record, case, suspect)
        if tally is None:
            return None
        unexplained = record.is_of_tests and not tally.explained
        if unexplained and any(step.deviates for step in record.steps(case)):
            return None
        found[case] = tally
        against_it += tally.ordinarily or tally.hidden
        if 2 * against_it > len(record.failed):
            return None
    if any(tally.raised for tally in found.values()):
        if not any(tally.returned for tally in found.values()):
            return None
        found = {case: tally.with_raised() for case, tally in found.items()}
    for_it = sum(tally.explained > 0 and not tally.ordinarily for tally in found.values())
    return found if for_it > against_it else None


def _wrong(record: Record, case: str, entry: str) -> Tally:
    """How many wrong answers an entry point gave in a case."""
    wrong = [step for step in record.steps(case) if step.deviates and step.entry == entry]
    return Tally(len(wrong), sum(step.is_ordinary for step in wrong))


def _tally(record: Record, case: str, suspect: Misconception) -> Tally | None:
    """How many of the learner's wrong answers of a case the misconception gives too.

    None if the misconception is wrong in an ordinary answer where the learner is right, or raises
    another exception, or if its tests judge anything as neither the learner's nor right tests do.
    """
    steps = record.steps(case)
    own = [number for number, step in enumerate(steps, 1) if step.entry == suspect.replaces]
    steps = steps[: max(own, default=0)]  # later steps are not its answers
    tally = Tally()
    answers = record.replays.of_misconception(suspect.id, steps, suspect.among(record.solution))
    for step, suspected in zip(steps, answers, strict=True):
        if step.entry != suspect.replaces:
            continue
        if suspected is None:  # it gives the solution's answer
            tally.hidden |= step.is_hidden
        elif step.agrees(suspected, record.accepts_wider):
            tally.explained += step.deviates
            tally.ordinary += step.deviates and step.is_ordinary
            tally.seen += step.deviates and not step.is_hidden
            tally.returned += step.deviates and step.is_ordinary and step.learner.error is None
        elif step.is_hidden and suspected.error is None:
            tally.hidden = True
        elif step.is_hidden and _is_of_one_type(step.learner, suspected):
            tally.raised += 1
            tally.raised_ordinary += step.is_ordinary
        elif record.is_of_tests:
            return None
        elif not step.is_ordinary:
            tally.differs = True
        elif not step.deviates or step.is_hidden:
            return None
        else:
            tally.differs = tally.ordinarily = True
    return tally


def _is_of_one_type(one: Read, other: Read) -> bool:
    """Whether both are exceptions of one type."""
    kinds = [each.error and each.error.get("type") for each in (one, other)]
    return None not in kinds and kinds[0] == kinds[1]
