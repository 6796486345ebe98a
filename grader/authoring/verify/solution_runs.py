"""What the runs of a stage's solution show of its checks: which fail, and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from grader.authoring.verify.author_files import check_place
from grader.authoring.verify.runs import CheckRuns, Find
from grader.run.facts import FINE, NO_SENSE, Case, CaseFact, Ending, StageFacts
from grader.run.worker.wire import Frame
from grader.types.course import Stage
from grader.types.text import listed

_SHORT = 60  # characters
_FEW = 3  # how often a failing run is repeated
_TOLD = 2  # checks that the solution fails: how many with what was expected


class SolutionRuns:
    """Runs the solution with one seed after the other, and remembers what its checks did.

    `failing` has for each check that fails the seeds and facts, `flaky` those that pass when the
    same run is repeated, `unseeded` those that use other inputs or compare something else each
    time, `skipped` why checks did not run, and `dependent` those that pass after others alone.
    """

    def __init__(self, runs: CheckRuns) -> None:
        self._runs = runs
        self._random = runs.checks.random(runs.stage)
        self._seed = 0
        # For each case, and the seed if it draws by it: the requests, and what was compared.
        self._asked: dict[tuple[Case, int], tuple[list[Frame], list[tuple[str, str]]]] = {}
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._tried: Counter[str] = Counter()  # seeds, for each check
        self.failing: dict[str, list[tuple[int, CaseFact]]] = {}
        self.skipped: dict[str, str] = {}
        self.flaky: set[str] = set()
        self.unseeded: set[str] = set()
        self._first: set[str] = set()  # what fails when the last check runs first

    def backwards(self, solution: Find, seed: int) -> None:
        """Run the checks in reverse order, before any other run, to find those that share state."""
        facts = self._runs.known("backwards", solution, seed, backwards=True)
        self._first = {fact.case.check for fact in facts.cases if fact.ending not in FINE}
        self._runs.checks.forget()

    @property
    def dependent(self) -> set[str]:
        """The checks that pass only after another one has run."""
        return self._first - self.failing.keys() - self.flaky - self.unseeded

    def run(
        self, solution: Find, seeds: Iterable[int], *, only_random: bool = False
    ) -> Iterator[StageFacts]:
        """Run the checks with each of the seeds; the facts of each run."""
        for seed in seeds:
            self._runs.checks.forget()
            self._seed = seed
            facts = self._runs.known("the solution", solution, seed, only_random=only_random)
            self._expect_same_inputs(facts)
            self._tried.update({fact.case.check for fact in facts.cases})
            for fact in facts.cases:
                self.seconds[fact.case.check] += 0 if only_random else fact.seconds
                if fact.ending is Ending.SKIPPED:
                    self.skipped[fact.case.check] = fact.message
                elif fact.ending is not Ending.PASSED:
                    self.failing.setdefault(fact.case.check, []).append((seed, fact))
            yield facts

    def _expect_same_inputs(self, facts: StageFacts) -> None:
        """Find checks that ask or compare something else in a run with the same seed."""
        for fact in facts.cases:
            key = fact.case, self._seed if fact.case in self._random else 0
            asked = [exchange.request for exchange in fact.exchanges]
            compared = [(one.kind, one.tolerance) for one in fact.compared]
            before, noted = self._asked.setdefault(key, (asked, compared))
            is_other = any(one != other for one, other in zip(before, asked, strict=False))
            is_more = (len(before), noted) != (len(asked), compared)
            if is_other or (is_more and fact.ending in FINE):
                self.unseeded.add(fact.case.check)

    def again(self, solution: Find, seed: int) -> None:
        """Repeat the cases that draw by the seed, to find those that draw otherwise too."""
        self._runs.checks.forget()
        self._seed = seed
        self._expect_same_inputs(self._runs.known("again", solution, seed, only_random=True))

    def find_flaky(self, solution: Find) -> None:
        """Find the failing checks that pass when the same run is repeated."""
        for seed in {failures[0][0] for failures in self.failing.values()}:
            for _ in range(_FEW):
                self._runs.checks.forget()
                facts = self._runs.local(solution, seed)
                lost = {fact.case.check for fact in facts.cases if fact.ending not in FINE}
                first = {check for check, by in self.failing.items() if by[0][0] == seed}
                self.flaky |= first - lost

    def causes(self) -> list[str]:
        """Why each check fails; if the solution fails many, the rest only by their names."""
        of_solution = [
            check
            for check, failures in self.failing.items()
            if check not in self.flaky and not failures[0][1].faulty_line
        ]
        more = of_solution[_TOLD:]
        told = [self._cause(*each) for each in self.failing.items() if each[0] not in more]
        if more:
            names = listed([check.partition(".")[2] for check in more])
            checks = "check" if len(more) == 1 else "checks"
            told.append(f"the solution fails {len(more)} more {checks}: {names}")
        return told

    def _cause(self, check: str, failures: Sequence[tuple[int, CaseFact]]) -> str:
        """Why a check fails on the solution: an error in the check, or a difference of the two."""
        seed, fact = failures[0]
        if check in self.flaky:
            what = f"{check} gives different verdicts (seed {seed}): make its inputs with rand"
            return f"{check_place(self._runs.stage, check)}: {what}"
        seeds = len({seed for seed, _ in failures})
        tried = self._tried[check]
        under = f" with {seeds} of {tried} seeds, first {seed}" if seeds < tried else ""
        if fact.faulty_line:
            return f"{faulty_place(self._runs.stage, fact)}: {error_of(fact)} (in {check}{under})"
        what = f"the solution fails {check}{under}: {both_sides(fact)}"
        return f"{what}: see grade {self._runs.stage.slug} --submission solutions --seed {seed}"


def faulty_place(stage: Stage, fact: CaseFact) -> str:
    """The faulty line of the check's file, with the file's path in the course."""
    return f"{stage.place(stage.check_file)}:{fact.faulty_line}"


def first_line(fact: CaseFact) -> str:
    """The first line of what a case tells the learner."""
    return fact.message.partition("\n")[0]


def both_sides(fact: CaseFact) -> str:
    """The first line, and what was expected and what came if these are short."""
    sides = [" ".join(line.split()) for line in fact.message.split("\n")[1:]]
    short = [
        side for side in sides if len(side) <= _SHORT and side.startswith(("expected ", "got "))
    ]
    return ", ".join([first_line(fact), *short])


def error_of(fact: CaseFact) -> str:
    """The exception that a check itself raised, from the fact's message."""
    return first_line(fact).removeprefix(f"{NO_SENSE}: ").rstrip(": ")
