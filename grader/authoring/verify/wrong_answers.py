"""Runs a stage's wrong answers: its misconceptions, and answers that are always the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from grader.authoring.verify.author_files import check_place
from grader.authoring.verify.draft import Draft
from grader.authoring.verify.memory import sources_of_mistakes
from grader.authoring.verify.runs import CheckRuns, Find, Hangs, Seeds, silence
from grader.authoring.verify.solution_runs import SolutionRuns, error_of, faulty_place, first_line
from grader.authoring.verify.types import MisconceptionProof
from grader.misconceptions import Misconception
from grader.read.misconceptions import other_call
from grader.run.facts import FINE, CaseFact, Ending, StageFacts
from grader.types.text import listed

if TYPE_CHECKING:
    from grader.diagnosis.comparison.names import Tally

_COMPARE = "compare all values with a reference, for inputs whose right answer is another"
_EXPECT_ERROR = "first make a call that must work, then expect one kind of error"
_REPLAYS_CAP = 256 << 20  # bytes: all misconceptions are compared with all
_NAMED = 3  # misconceptions, in a message about many
_LOST = tuple(ending for ending in Ending if ending is not Ending.PASSED)
# If a misconception fails only with these errors, its author has mistyped something.
_SLIPS = ("NameError", "UnboundLocalError", "AttributeError", "ImportError", "ModuleNotFoundError")


@dataclass(eq=False)
class WrongAnswers:
    """Expects that checks catch wrong answers and say why; `step` is called after each run.

    `idle` are the checks that pass for any answer, `unsaid` those that fail without a message.
    """

    _draft: Draft
    _runs: CheckRuns
    _solution: SolutionRuns
    _seeds: Seeds
    _step: Callable[[], None]

    def __post_init__(self) -> None:
        from grader.diagnosis.comparison.replay import Replays

        stage = self._runs.stage
        self._place = stage.place(stage.misconceptions_file)
        self._replays = Replays(_REPLAYS_CAP)
        self._has_learnt = False
        self._passing: defaultdict[str, list[str]] = defaultdict(list)  # ids, by why they pass
        self.idle: set[str] = set()
        self.unsaid: dict[str, str] = {}

    def misconceptions(self, known: Sequence[Misconception], solution: Find) -> None:
        """Run the checks against each misconception, in this process."""
        runs, found = self._runs, dict[Misconception, StageFacts]()
        text = runs.stage.misconceptions_file.read_text("utf-8-sig") if known else ""
        digests = sources_of_mistakes(text)
        for mistake in known:
            name, find = f"{self._place}: the misconception {mistake.id}", mistake.among(solution)
            broken = other_call(mistake, solution(mistake.replaces))
            try:
                if broken and not runs.stage.fixture:
                    self._draft.problems.append(f"{name} is broken: {broken}")
                else:
                    who = ("misconception", mistake.id, digests.get(mistake.id, text))
                    found[mistake] = runs.known(who, find, self._seeds.first)
                    self._expect_one_verdict(name, who, find, found[mistake])
            except Hangs as error:
                self._draft.problems.append(f"{name} {error}")
            self._step()
        for mistake, facts in found.items():
            explain = partial(self._explained, facts, found, solution)
            names, by_id = runs.memory.of(("names", mistake.id, text), explain)
            own = by_id.get(mistake.id)
            same = [id for id, by in by_id.items() if id != mistake.id and by and by == own]
            self._misconception(mistake, facts, solution, names, same)
        for why, ids in self._passing.items():
            names_of_some = listed(ids, most=_NAMED)
            self._draft.problems.append(f"{self._place}: no check catches {names_of_some}: {why}")

    def _expect_one_verdict(self, name: str, who: Hashable, find: Find, first: StageFacts) -> None:
        """Report a wrong answer whose checks fail with one seed and pass with another."""
        lost = {self._seeds.first: _lost(first.cases)}
        for seed in self._seeds.answers[1:]:
            drawn = self._runs.known(who, find, seed, only_random=True).cases
            again = {fact.case for fact in drawn}
            lost[seed] = _lost([*drawn, *(f for f in first.cases if f.case not in again)])
        ever = set[str]().union(*lost.values())
        varied = sorted(check for check in ever if not all(check in ids for ids in lost.values()))
        if varied:
            points = {check.id: check.points for check in first.planned}
            given = {sum(points[id] for id in points.keys() - ids) for ids in lost.values()}
            points_given = " or ".join(f"{value:g}" for value in sorted(given))
            self._draft.problems.append(
                f"{name} gets {points_given} points depending on the seed: give "
                f"{', '.join(varied)} a fixed input that shows the mistake"
            )

    def constants(self, solution: Find) -> None:
        """Report checks that pay for a constant answer without saying why."""
        from grader.authoring.verify.constants import ANY_ANSWER, ODD, constants, earned

        stage = self._runs.stage
        pays = []
        for constant in constants(stage, solution):
            who = ("constant", constant.name, constant.is_built)
            # No more of a check runs than shows that it is lost.
            facts = self._runs.known(who, constant.find, self._seeds.first, gives_up=_LOST)
            pays += [(check, constant.name) for check in earned(stage, constant, facts)]
        for planned in self._runs.checks.planned[stage.slug]:
            found = dict.fromkeys(name for check, name in pays if check == planned.id)
            undeclared = [name for name in found if name not in (*planned.pays, ODD)]
            unused = [name for name in planned.pays if name not in found]
            place = f"{check_place(stage, planned.id)}: {planned.id}"
            catches = any(planned.id in mistake.caught_by for mistake in self._draft.misconceptions)
            fails = planned.id in self._solution.failing  # which is reported already
            if set(found) >= ANY_ANSWER and not (catches or fails):
                self.idle.add(planned.id)
                self._draft.problems.append(f"{place} passes for any answer: {_COMPARE}")
            elif undeclared and not fails:
                values = set(found) - {name for name in found if name.endswith("Error")} - {"None"}
                advice = _COMPARE if values or undeclared == ["None"] else _EXPECT_ERROR
                self._draft.problems.append(
                    f"{place} pays for an answer that is always {listed(undeclared, 'or')}: "
                    f"{advice}, or give a reason with @pytest.mark.pays"
                )
            if unused and not fails:
                what = f"does not pay for {listed(unused, 'or')}: remove that from its mark"
                self._draft.problems.append(f"{place} {what}")
        self._step()

    def _misconception(
        self,
        mistake: Misconception,
        facts: StageFacts,
        solution: Find,
        names: set[str],
        same: Sequence[str],
    ) -> None:
        """Record which checks catch a misconception, and which `names` the diagnosis gives it.

        It answers every request as those with the ids `same` do.
        """
        from grader.authoring.verify.tolerances import is_clear, shares

        self._draft.wrong[mistake.id] = shares(facts)
        if not is_clear(facts):
            self._draft.faint.add(mistake.id)
        failed = [f for f in facts.cases if f.ending in (Ending.WRONG, Ending.RAISED)]
        failed = [fact for fact in failed if fact.case.check not in self._solution.failing]
        for fact in failed:
            if fact.faulty_line:
                what = f"{faulty_place(self._runs.stage, fact)}: {error_of(fact)}"
                self.unsaid.setdefault(fact.case.check, f"{what} (for {mistake.id})")
        others = ", ".join(sorted(names - {mistake.id}))
        name = mistake.id if names == {mistake.id} else others or None
        caught_by = tuple(dict.fromkeys(fact.case.check for fact in failed))
        proof = MisconceptionProof(mistake.id, caught_by, name, tuple(same))
        is_first = not {*same} & {each.id for each in self._draft.misconceptions}
        self._draft.misconceptions.append(proof)
        if self._solution.failing and not caught_by:
            return  # the check that catches it may be broken
        if not caught_by:
            self._passing[self._why_it_passes(facts, solution)].append(mistake.id)
        problems = list(_misconception_problems(proof, failed))
        if same and is_first:
            problems.append(f"{mistake.id} behaves exactly like {', '.join(same)}: remove one")
        self._draft.problems += [f"{self._place}: {problem}" for problem in problems]

    def _explained(
        self, facts: StageFacts, found: Mapping[Misconception, StageFacts], solution: Find
    ) -> tuple[set[str], dict[str, Mapping[str, Tally] | None]]:
        """The names that the diagnosis gives, and which misconceptions explain what."""
        from grader.diagnosis.comparison.names import explanations, named
        from grader.diagnosis.comparison.replay import Record

        known = tuple(found)
        with silence():
            if not self._has_learnt:
                self._has_learnt = True
                for mistake, of_mistake in found.items():
                    self._replays.learn(mistake.id, of_mistake, solution)
            record = Record(facts, solution, self._replays)
            explained = explanations(record, known)
            names = {diagnosis.id for diagnosis in named(record, known, explained).values()}
            return names, {id: explained.everywhere(id) for id in explained.found}

    def _why_it_passes(self, facts: StageFacts, solution: Find) -> str:
        """Why no check catches a misconception, and what would."""
        from grader.diagnosis.comparison.replay import against_solution

        with silence():
            differing = dict.fromkeys(
                fact.case.check
                for fact in facts.cases
                if any(step.deviates for step in against_solution(fact, solution, self._replays))
            )
        if differing:
            return (
                f"a wrong result goes unnoticed in {listed(list(differing))}: compare all of it "
                "(values, shape, dtype, gradients) with a reference, within a small tolerance"
            )
        return (
            "every call of a check gives the solution's result: add one that shows the mistake "
            f"(`grade suggest {self._runs.stage.slug}` looks for it), or remove the misconception"
        )


def _lost(facts: Iterable[CaseFact]) -> set[str]:
    """The ids of the checks that do not pass."""
    return {fact.case.check for fact in facts if fact.ending not in FINE}


def _misconception_problems(proof: MisconceptionProof, failed: Sequence[CaseFact]) -> Iterator[str]:
    name = f"the misconception {proof.id}"
    raised = [fact for fact in failed if fact.ending is Ending.RAISED]
    slips = [fact for fact in raised if fact.message.startswith(_SLIPS)]
    if failed and len(slips) == len(failed):
        yield f"{name} is broken rather than caught: {first_line(slips[0])}"
    if proof.named not in (None, proof.id):
        yield f"{name} is wrongly named {proof.named}"
