"""Mutants of every solution, run against the stage's own checks: which changes would pass?

The checks are collected once, and each mutant runs in a fork of the process that has collected
them. What they ask and what the solution answers is known there already, so that a mutant costs
little more than the calls that show what is wrong with it.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from grader.misconceptions import Misconception
from grader.read.author_files import check_place
from grader.read.misconceptions import read_misconceptions
from grader.read.mutants import read_records
from grader.read.mutations import mutants_of
from grader.read.stubs import read_source
from grader.run.answers import LocalAnswers
from grader.run.facts import Case, CaseFact, Ending
from grader.run.forks import Bounds, Lost, in_forks, uninterrupted
from grader.run.remote import StageUnderCheck
from grader.run.solutions import solution_files
from grader.run.worker.loader import Loader
from grader.types.course import Course, Stage
from grader.types.mutants import (
    Equivalent,
    Fate,
    Mutant,
    MutantsReport,
    Need,
    Records,
    StageTrials,
    Trial,
)

if TYPE_CHECKING:
    from grader.run.session import Checks

SEED = 1
_LEAST_SECONDS = 2.0  # of processor time
_SLOWER = 5  # a mutant may take so many times the solution's time
_OVERHEAD = 0.001  # seconds of each case, whatever it asks

Progress = Callable[[str, int, int], None]
_Failure = tuple[str, bool]  # a case, and whether the check was not content
_Job = TypeVar("_Job", bound=Mutant | Misconception)


def try_mutants(
    course: Course,
    stages: Sequence[Stage],
    *,
    lanes: int = 1,
    needed: bool = False,
    progress: Progress = lambda slug, done, total: None,
) -> MutantsReport:
    """What becomes of the mutants of these stages, `lanes` of them at a time.

    With `needed` every check is run for every mutant, to tell what each alone catches. `progress`
    is told the stage, how many of its mutants are done, and of how many. Ctrl-C ends it with what
    is known. Raises CourseError if a file of the course is missing or malformed.
    """
    records = {stage.slug: read_records(stage) for stage in stages}
    done: list[StageTrials] = []
    for name in course.preload:
        importlib.import_module(name)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # a fork has no other thread
    from grader.run.session import with_checks

    def body(checks: Checks) -> MutantsReport:
        begun, finished = (time.monotonic(), _core_seconds()), True
        try:
            for stage in stages:
                known = records[stage.slug]
                trials = _Trials(course, stage, checks, known, lanes, needed, progress)
                try:
                    trials.run()
                finally:
                    done.append(trials.result())
        except KeyboardInterrupt:
            finished = False
        seconds, core_seconds = time.monotonic() - begun[0], _core_seconds() - begun[1]
        return MutantsReport(tuple(done), seconds, core_seconds, finished)

    return with_checks(course, stages, body)


def _core_seconds() -> float:
    """The processor time that this process and its forks have used."""
    return sum(os.times()[:4])


@dataclass(frozen=True)
class _Told:
    """What a fork tells of a mutant: the checks that failed, and the cases that showed it.

    `wrong` are the checks that were not content, not those whose call raised an error.
    """

    checks: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    lost: Lost | None = None


class _Trials:
    """The mutants of one stage and what is known of them so far."""

    def __init__(
        self,
        course: Course,
        stage: Stage,
        checks: Checks,
        records: Records,
        lanes: int,
        needed: bool,
        progress: Progress,
    ) -> None:
        self._course = course
        self._stage = stage
        self._checks = checks
        self._records = records
        self._lanes = lanes
        self._needed = needed
        self._progress = progress
        self._mutants: tuple[Mutant, ...] = ()
        self._mistakes: tuple[Misconception, ...] = ()
        self._told: dict[str, _Told] = {}  # by the mutant's id
        self._caught: dict[str, tuple[str, ...]] = {}  # misconceptions by id, with `needed`
        # How many mutants of a function each case has shown.
        self._telling: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[str, float] = {}  # of each case with the solution
        self._cases: dict[str, Case] = {}
        self._bounds = Bounds(_LEAST_SECONDS, course.limits.memory_mb << 20)
        self._problems: list[str] = []
        self._find: Callable[[str], Any]
        self._skipped = ""
        self._is_done = False

    def run(self) -> None:
        """Try every mutant."""
        if self._stage.fixture:
            self._skipped = "its solution is a test; what it catches is counted by its checks"
            return
        self._mutants = mutants_of(self._stage)
        self._progress(self._stage.slug, 0, len(self._mutants))
        self._mistakes = read_misconceptions(self._stage)
        with _in_place(self._course, self._stage) as self._find:
            with uninterrupted():  # code under check would take Ctrl-C for its own
                self._learn_from(self._find)
            if self._problems:
                return
            self._try_all()
            if not self._needed:
                self._find_blunt_checks()
        self._is_done = True

    def result(self) -> StageTrials:
        """What is known."""
        trials = tuple(self._trial(m) for m in self._mutants if m.id in self._told)
        needs: tuple[Need, ...] = ()
        problems = list(self._problems)
        if self._is_done:
            problems += self._record_problems()
            if self._needed:
                needs = tuple(self._needs())
                problems += self._overlap_problems(needs)
        slug, count = self._stage.slug, len(self._mutants)
        return StageTrials(slug, count, trials, needs, tuple(problems), self._skipped)

    def _learn_from(self, find: Callable[[str], Any]) -> None:
        """Run the solution, to know what the checks ask and how long each case takes."""
        slug = self._stage.slug
        every = [case for check in self._checks.planned[slug] for case in check.cases]
        failing: dict[str, None] = {}
        before = time.process_time()
        for fact in self._facts(find, every):
            if fact.ending is Ending.PASSED:
                self._cases[fact.case.id] = fact.case
            elif fact.ending is not Ending.SKIPPED:
                failing.setdefault(fact.case.check)
        for check in failing:
            self._problems.append(f"the solution fails {check}: see grade verify {slug}")
        seconds = max(_LEAST_SECONDS, _SLOWER * (time.process_time() - before))
        self._bounds = Bounds(seconds, self._course.limits.memory_mb << 20)
        for fact in self._facts(find, list(self._cases.values())):  # what is lazy is loaded now
            self._seconds[fact.case.id] = fact.seconds + _OVERHEAD

    def _facts(self, find: Callable[[str], Any], cases: Iterable[Case]) -> Iterator[CaseFact]:
        remote = StageUnderCheck(self._stage, LocalAnswers(find))
        return self._checks.facts(self._stage, remote, SEED, "cpu", cases)

    def _try_all(self) -> None:
        """Run all mutants, and with `needed` the misconceptions too."""
        of_mutant = self._every_check if self._needed else self._first_check
        for mutant, told in self._forked(self._mutants, of_mutant):
            self._told[mutant.id] = told
            self._telling.update((mutant.where, case) for case in told.cases)
            self._progress(self._stage.slug, len(self._told), len(self._mutants))
        if self._needed:
            for mistake, told in self._forked(self._mistakes, self._every_check):
                self._caught[mistake.id] = told.checks

    def _find_blunt_checks(self) -> None:
        """Name the checks that judge nothing; most have found something wrong already.

        That an answer raises an error tells nothing of what a check asserts.
        """
        sharp = {check for told in self._told.values() for check in told.wrong}
        left = {case.check for case in self._cases.values()} - sharp

        def jobs() -> Iterator[Mutant | Misconception]:
            yield from self._mistakes
            yield from self._mutants

        def work(job: Mutant | Misconception) -> list[_Failure]:
            cases = [case for case in self._cases.values() if case.check in left]
            return list(self._failing(job, cases))

        with closing(self._forked(takewhile(lambda _: left, jobs()), work)) as tried:
            for _, told in tried:
                left.difference_update(told.wrong)
        for check in sorted(left):
            place = check_place(self._stage, check)
            said = f"{check} finds no mutant and no misconception wrong"
            self._problems.append(f"{place}: {said}: sharpen or remove it")

    def _forked(
        self, jobs: Iterable[_Job], work: Callable[[_Job], list[_Failure]]
    ) -> Generator[tuple[_Job, _Told], None, None]:
        """Each job with what became of it; `work` gives the cases that failed."""
        with closing(in_forks(jobs, work, lambda: self._bounds, lanes=self._lanes)) as forks:
            for job, said in forks:
                if isinstance(said, Lost):
                    yield job, _Told(lost=said)
                else:
                    cases = tuple(case for case, _ in said)
                    checks = tuple(self._cases[case].check for case in cases)
                    wrong = tuple(self._cases[case].check for case, is_wrong in said if is_wrong)
                    yield job, _Told(checks, cases, wrong)

    # What follows runs in a fork.

    def _first_check(self, mutant: Mutant) -> list[_Failure]:
        """The first case that fails: those that cost little and have told much come first."""
        order = sorted(
            self._cases.values(),
            key=lambda case: self._seconds[case.id] / (1 + self._telling[mutant.where, case.id]),
        )
        return list(islice(self._failing(mutant, order), 1))

    def _every_check(self, job: Mutant | Misconception) -> list[_Failure]:
        """A case of every check that fails."""
        return list(self._failing(job, list(self._cases.values())))

    def _failing(self, job: Mutant | Misconception, cases: Sequence[Case]) -> Iterator[_Failure]:
        """The cases that fail, one of each check."""
        failed: set[str] = set()
        left = (case for case in cases if case.check not in failed)
        for fact in self._facts(self._implementation(job), left):
            if fact.ending not in (Ending.PASSED, Ending.SKIPPED):
                failed.add(fact.case.check)
                yield fact.case.id, _has_judged(fact)

    def _implementation(self, job: Mutant | Misconception) -> Callable[[str], Any]:
        """The entry points as the mutant or the misconception has them."""
        if isinstance(job, Misconception):
            return lambda name: job.implementation if name == job.replaces else self._find(name)
        try:
            Loader({self._stage.file_name: job.source.encode()}, {}).install()
            module = importlib.import_module(self._stage.slug)
        except BaseException as error:  # noqa: BLE001 - every check that needs it meets it
            broken = error

            def find(name: str) -> Any:
                raise broken

            return find
        return lambda name: getattr(module, name)

    # What follows makes sense of it.

    def _trial(self, mutant: Mutant) -> Trial:
        told = self._told[mutant.id]
        if told.lost is not None:
            fate = Fate.TIMED_OUT if told.lost is Lost.TIMED_OUT else Fate.CRASHED
            return Trial(mutant.id, fate)
        if told.checks:
            return Trial(mutant.id, Fate.CAUGHT, told.checks)
        if mutant.change in {record.change for record in self._records.equivalent}:
            return Trial(mutant.id, Fate.EXPLAINED)
        return Trial(mutant.id, Fate.LIVE, diff=self._diff(mutant))

    def _diff(self, mutant: Mutant) -> str:
        source, place = read_source(self._stage)
        old, new = (text.split("\n") for text in (source.replace("\r\n", "\n"), mutant.source))
        return "\n".join(difflib.unified_diff(old, new, place, mutant.id, n=2, lineterm=""))

    def _record_problems(self) -> Iterator[str]:
        """Records that say something which is not so, or not any more."""
        place = self._records.place
        for number, record in enumerate(self._records.equivalent, start=1):
            same = [mutant for mutant in self._mutants if mutant.change == record.change]
            if not same:
                yield f"{place}: equivalent {number} is no mutant (any more): {_change(record)}"
            for mutant in same:
                trial = self._trial(mutant)
                if trial.fate is not Fate.EXPLAINED:
                    by = " by ".join([trial.fate.value, *trial.caught_by[:1]])
                    yield f"{place}: equivalent {number} is {by}: {_change(record)}"
        known = [check.id for check in self._checks.planned[self._stage.slug]]
        for check in self._records.overlaps:
            if f"{self._stage.slug}.{check}" not in known:
                yield f"{place}: overlaps: there is no check '{check}'"

    def _overlap_problems(self, needs: Sequence[Need]) -> Iterator[str]:
        """Checks that nothing needs, without a word on why they are there; and the other way."""
        for need in needs:
            check = need.check.partition(".")[2]
            if not need.only and check not in self._records.overlaps:
                place = check_place(self._stage, need.check)
                said = f"{need.check} catches nothing that no other check does"
                advice = f"sharpen it, or give the reason under [overlaps] in {self._records.place}"
                yield f"{place}: {said}: {advice}"
            elif need.only and check in self._records.overlaps:
                yield f"{self._records.place}: overlaps: '{check}' alone catches {need.only[0]}"

    def _needs(self) -> Iterator[Need]:
        caught = {id: told.checks for id, told in self._told.items()} | self._caught
        for check in dict.fromkeys(case.check for case in self._cases.values()):
            yield Need(check, tuple(id for id, by in caught.items() if by == (check,)))


def _has_judged(fact: CaseFact) -> bool:
    """Whether a check that failed has found an answer wrong by what it asserts."""
    from grader.run.session import NO_SENSE

    return fact.ending is Ending.WRONG and not fact.message.startswith(NO_SENSE)


def _change(record: Equivalent) -> str:
    return f"{record.where}: {' / '.join(record.before)} -> {' / '.join(record.after)}"


@contextmanager
def _in_place(course: Course, stage: Stage) -> Iterator[Callable[[str], Any]]:
    """The solution's entry points; what the stage requires can be imported from then on."""
    loader = Loader(solution_files(course), {})
    loader.install()
    try:
        module = importlib.import_module(stage.slug)
        del sys.modules[stage.slug]
        yield lambda name: getattr(module, name)
    finally:
        loader.remove()
