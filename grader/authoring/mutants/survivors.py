"""Runs the mutants of every solution against the stage's checks: which changes would pass?

The checks are collected once. The mutants run in forks of that process, which already knows the
checks' requests and the solution's answers. So a mutant costs little more than the calls that
reveal it.
"""

from __future__ import annotations

import difflib
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from grader.authoring.mutants.forks import Bounds, in_forks
from grader.authoring.mutants.making import mutants_of
from grader.authoring.mutants.record import read_records
from grader.authoring.mutants.types import (
    Equivalent,
    Escape,
    Fate,
    Mutant,
    MutantsReport,
    MutantTrial,
    Need,
    Overlap,
    Records,
    StageTrials,
)
from grader.authoring.verify.author_files import check_place
from grader.authoring.verify.runs import import_libraries
from grader.authoring.verify.types import Progress
from grader.misconceptions import Misconception
from grader.read.misconceptions import read_misconceptions
from grader.read.stubs import read_source
from grader.run.facts import FINE, Case, CaseFact, Ending
from grader.run.lanes import uninterrupted
from grader.run.local_answers import LocalAnswers
from grader.run.solutions import at_hand, solution_at_hand
from grader.run.under_check import StageUnderCheck
from grader.types.course import Course, Stage
from grader.types.errors import close_to

if TYPE_CHECKING:
    from grader.run.session import Checks

SEED = 1
_LEAST_SECONDS = 2.0  # of CPU time
_SLOWER = 5  # a mutant may take this many times the solution's time
_OVERHEAD = 0.001  # seconds of each case beside its calls
_IN_A_FORK = 100  # mutants
_WITNESSES = 3  # the fewest witnesses of a check, if it catches that many

_Job = TypeVar("_Job", bound=Mutant | Misconception)


def try_mutants(
    course: Course,
    stages: Sequence[Stage],
    *,
    lanes: int = 1,
    needed: bool = False,
    progress: Progress = lambda slug, done, total: None,
) -> MutantsReport:
    """Run the mutants of these stages, `lanes` at once.

    With `needed`, every check runs for every mutant, to show what each alone catches. `progress` is
    called with the stage, the number of finished mutants and the total. Ctrl-C ends the run and
    keeps the results so far. Raises CourseError if a file of the course is missing or malformed.
    """
    records = {stage.slug: read_records(stage) for stage in stages}
    done: list[StageTrials] = []
    import_libraries(course)
    from grader.run.collecting import with_checks

    def body(checks: Checks) -> MutantsReport:
        begun, finished = time.monotonic(), True
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
        return MutantsReport(tuple(done), time.monotonic() - begun, finished)

    return with_checks(course, stages, body, seconds=course.limits.load_seconds)


@dataclass(frozen=True)
class _Outcome:
    """A fork's result for a mutant or a misconception: the failed checks, each with its case.

    `wrong` holds the checks that found a wrong value, without those whose call raised an error, and
    the lines that found it.
    """

    cases: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, tuple[int, ...]] = field(default_factory=dict)
    lost: Fate | None = None  # why there is no result
    is_sure: bool = True  # nothing that ran before in the same process can have changed it


@dataclass(eq=False)
class _Trials:
    """The mutants of one stage and the results so far."""

    _course: Course
    _stage: Stage
    _checks: Checks
    _records: Records
    _lanes: int
    _needed: bool
    _progress: Progress

    def __post_init__(self) -> None:
        self._mutants: tuple[Mutant, ...] = ()
        self._mistakes: tuple[Misconception, ...] = ()
        self._outcomes: dict[str, _Outcome] = {}  # by the id of a mutant or a misconception
        self._witnessed: dict[str, set[str]] = defaultdict(set)  # checks by a witness' id
        for check, overlap in self._records.overlaps.items():
            for witness in overlap.catches:
                self._witnessed[witness].add(f"{self._stage.slug}.{check}")
        # How many mutants of a function each case has caught.
        self._telling: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[str, float] = {}  # of each case with the solution
        self._cases: dict[str, Case] = {}
        self._bounds: Bounds
        self._problems: list[str] = []
        self._find: Callable[[str], Any]
        self._skipped = ""
        self._is_done = False

    def run(self) -> None:
        """Run every mutant."""
        if self._stage.fixture:
            self._skipped = "its solution is a test; what it catches is counted by its checks"
            return
        self._mutants = mutants_of(self._stage)
        self._progress(self._stage.slug, 0, len(self._mutants))
        self._mistakes = read_misconceptions(self._stage)
        with solution_at_hand(self._course, self._stage) as self._find:
            with uninterrupted():  # otherwise the code under check would get the Ctrl-C
                self._learn_from(self._find)
            if self._problems:
                return
            self._try_all()
            self._find_blunt_checks()
        self._is_done = True

    def result(self) -> StageTrials:
        """The results so far."""
        trials = tuple(self._trial(m) for m in self._mutants if m.id in self._outcomes)
        needs = tuple(self._needs()) if self._is_done and self._needed else ()
        escapes = tuple(self._escapes()) if self._is_done else ()
        problems = list(self._problems)
        if self._is_done:
            problems += self._record_problems()
            problems += self._overlap_problems(needs)
        slug, count = self._stage.slug, len(self._mutants)
        return StageTrials(slug, count, trials, needs, escapes, tuple(problems), self._skipped)

    @property
    def _jobs(self) -> tuple[Mutant | Misconception, ...]:
        return (*self._mutants, *self._mistakes)

    def _learn_from(self, find: Callable[[str], Any]) -> None:
        """Run the solution, to learn the checks' requests and the time of each case."""
        slug = self._stage.slug
        every = [case for check in self._checks.planned[slug] for case in check.cases]
        failing: dict[str, None] = {}
        before = time.process_time()
        for fact in self._facts(find, every):
            if fact.ending is Ending.PASSED:
                self._cases[fact.case.id] = fact.case
            elif fact.ending is not Ending.SKIPPED:
                failing.setdefault(fact.case.check)
        self._problems += [f"the solution fails {one}: see grade verify {slug}" for one in failing]
        seconds = max(_LEAST_SECONDS, _SLOWER * (time.process_time() - before))
        self._bounds = Bounds(seconds, self._course.limits.memory_mb << 20)
        for fact in self._facts(find, list(self._cases.values())):  # lazy imports are loaded by now
            self._seconds[fact.case.id] = fact.seconds + _OVERHEAD

    def _facts(self, find: Callable[[str], Any], cases: Iterable[Case]) -> Iterator[CaseFact]:
        remote = StageUnderCheck(self._stage, LocalAnswers(find))
        return self._checks.facts(self._stage, remote, SEED, "cpu", cases)

    def _try_all(self) -> None:
        """Run all mutants, and of the misconceptions those that a record names.

        That the others are caught is what `grade verify` proves.
        """
        every = self._cases.values()
        work = (lambda job: self._outcome(job, every)) if self._needed else self._first_check
        for mutant, outcome in self._forked(self._mutants, work):
            self._outcomes[mutant.id] = outcome
            self._progress(self._stage.slug, len(self._outcomes), len(self._mutants))
        mistakes = [one for one in self._mistakes if self._needed or one.id in self._witnessed]
        for mistake, outcome in self._forked(mistakes, work):
            self._outcomes[mistake.id] = outcome

    def _find_blunt_checks(self) -> None:
        """Name the checks that catch nothing; most checks have caught something already.

        An answer that raises an error shows nothing about what a check asserts.
        """
        sharp = {check for outcome in self._outcomes.values() for check in outcome.wrong}
        left = {case.check for case in self._cases.values()} - sharp

        def work(job: Mutant | Misconception) -> _Outcome:
            return self._outcome(job, [case for case in self._cases.values() if case.check in left])

        jobs: tuple[Mutant | Misconception, ...] = (*self._mistakes, *self._mutants)
        with closing(self._forked(jobs, work)) as tried:
            while left and (found := next(tried, None)):
                left.difference_update(found[1].wrong)
        for check in sorted(left):
            place = check_place(self._stage, check)
            what = f"{check} catches no mutant and no misconception"
            self._problems.append(f"{place}: {what}: sharpen or remove it")

    def _forked(
        self, jobs: Sequence[_Job], work: Callable[[_Job], _Outcome]
    ) -> Generator[tuple[_Job, _Outcome], None, None]:
        """Each job with its outcome.

        A fork does many jobs. If one before may have changed what a job does, it runs again in a
        fork of its own.
        """

        def proven(job: _Job) -> _Outcome:
            outcome = work(job)
            return replace(outcome, is_sure=self._is_caught_here(outcome))

        unsure: list[_Job] = []
        for most, some, do in ((_IN_A_FORK, jobs, proven), (1, unsure, work)):
            forks = in_forks(some, do, self._bounds, lanes=self._lanes, most=most)
            with closing(forks):
                for job, result in forks:
                    outcome = _Outcome(lost=result) if isinstance(result, Fate) else result
                    if outcome.is_sure:
                        yield job, outcome
                    else:
                        unsure.append(job)

    # The following methods run in a fork.

    def _is_caught_here(self, outcome: _Outcome) -> bool:
        """Whether the solution passes in this process what the mutant has just failed."""
        again = [self._cases[case] for case in outcome.cases.values()]
        facts = self._facts(self._find, again)
        return bool(again) and all(fact.ending is Ending.PASSED for fact in facts)

    def _first_check(self, job: Mutant | Misconception) -> _Outcome:
        """A failing case of each check that records the job as a witness, else the first failure.

        Cheap cases that have caught many mutants come first.
        """
        checks = self._witnessed.get(job.id, ())
        cases = self._cases.values()
        found = self._outcome(job, [case for case in cases if case.check in checks])
        where = job.replaces if isinstance(job, Misconception) else job.where
        order = sorted(
            cases, key=lambda case: self._seconds[case.id] / (1 + self._telling[where, case.id])
        )
        found = found if found.cases else self._outcome(job, order, most=1)
        self._telling.update((where, case) for case in found.cases.values())
        return found

    def _outcome(
        self, job: Mutant | Misconception, cases: Iterable[Case], most: int | None = None
    ) -> _Outcome:
        """A failing case of each check, or of the first `most` that fail."""
        found = _Outcome()
        left = (case for case in cases if case.check not in found.cases)
        with self._implementation(job) as find:
            facts = self._facts(find, left)
            for fact in islice((fact for fact in facts if fact.ending not in FINE), most):
                found.cases[fact.case.check] = fact.case.id
                if fact.has_judged:
                    found.wrong[fact.case.check] = tuple(fact.lines)
        return found

    @contextmanager
    def _implementation(self, job: Mutant | Misconception) -> Iterator[Callable[[str], Any]]:
        """A function that finds the entry points of the mutant or the misconception."""
        if isinstance(job, Misconception):
            yield job.among(self._find)
            return

        sys.modules.pop(self._stage.slug, None)  # the solution's
        files = {self._stage.file_name: job.source.encode()}
        with ExitStack() as stack:
            try:
                find = stack.enter_context(at_hand(files, self._stage))
            except BaseException as error:  # noqa: BLE001 - a mutant may raise anything
                find = partial(_raise, error)  # for each check that needs it
            yield find

    # The following methods evaluate the outcomes.

    def _trial(self, mutant: Mutant) -> MutantTrial:
        outcome = self._outcomes[mutant.id]
        if outcome.lost is not None:
            return MutantTrial(mutant.id, outcome.lost)
        if outcome.cases:
            return MutantTrial(mutant.id, Fate.CAUGHT, tuple(outcome.cases))
        if mutant.change in {record.change for record in self._records.equivalent}:
            return MutantTrial(mutant.id, Fate.EXPLAINED)
        record = Equivalent(*mutant.change, "")
        return MutantTrial(mutant.id, Fate.LIVE, diff=self._diff(mutant), record=record)

    def _diff(self, mutant: Mutant) -> str:
        source, place = read_source(self._stage)
        sides = source.split("\n"), mutant.source.split("\n")
        return "\n".join(difflib.unified_diff(*sides, place, mutant.id, n=2, lineterm=""))

    def _record_problems(self) -> Iterator[str]:
        """Messages about records that are not, or no longer, true."""
        place = self._records.place
        for number, record in enumerate(self._records.equivalent, start=1):
            same = [mutant for mutant in self._mutants if mutant.change == record.change]
            if not same:
                yield f"{place}: equivalent {number} is no longer a mutant: {_change(record)}"
            for trial in map(self._trial, same):
                if trial.fate is not Fate.EXPLAINED:
                    by = " by ".join([trial.fate.value, *trial.caught_by[:1]])
                    yield f"{place}: equivalent {number} is {by}: {_change(record)}"
        checks = [_name(check.id) for check in self._checks.planned[self._stage.slug]]
        for check, overlap in self._records.overlaps.items():
            if check not in checks:
                yield f"{place}: overlaps: there is no check '{check}'{close_to(check, checks)}"
            jobs = {job.id for job in self._jobs}
            for witness in overlap.catches:
                if witness not in jobs:
                    what = f"'{witness}' is no mutant and no misconception"
                    yield f"{place}: overlaps.{check}: {what}: --needed prints what to write"

    def _escapes(self) -> Iterator[Escape]:
        """Witnesses that their check, if it runs at all, no longer catches."""
        ran = {case.check for case in self._cases.values()}
        for job in self._jobs:
            for check in sorted(self._witnessed.get(job.id, set()) & ran):
                if self._is_witness(check, job.id):
                    continue
                if isinstance(job, Misconception):
                    yield Escape(check, job.id, says=job.says)
                else:
                    yield Escape(check, job.id, diff=self._diff(job))

    def _is_witness(self, check: str, id: str) -> bool:
        """Whether the check catches it; also true if its process was lost."""
        outcome = self._outcomes.get(id)
        return outcome is not None and (outcome.lost is not None or check in outcome.wrong)

    def _overlap_problems(self, needs: Sequence[Need]) -> Iterator[str]:
        """Messages about unneeded checks without a record, and about needed checks with one."""
        for need in needs:
            recorded = self._records.overlaps.get(_name(need.check))
            if need.overlap is not None and recorded is None:
                place = check_place(self._stage, need.check)
                what = f"{need.check} catches nothing that other checks don't catch too"
                yield f"{place}: {what}: sharpen it, or give the reason under [overlaps]"
            elif self._alone(need) and recorded is not None:
                place = f"{self._records.place}: overlaps.{_name(need.check)}"
                yield f"{place}: only this check catches {self._alone(need)[0]}: remove the record"

    def _needs(self) -> Iterator[Need]:
        """What each check alone catches, and the record that it lacks, if any."""
        for check in dict.fromkeys(case.check for case in self._cases.values()):
            only = [id for id, each in self._outcomes.items() if tuple(each.cases) == (check,)]
            need = Need(check, tuple(only))
            finds = [id for id, outcome in self._outcomes.items() if check in outcome.wrong]
            recorded = self._records.overlaps.get(_name(check))
            is_told = recorded and all(self._is_witness(check, id) for id in recorded.catches)
            if self._alone(need) or not finds or is_told:
                yield need
            else:
                reason = recorded.reason if recorded else ""
                yield replace(need, overlap=Overlap(reason, self._witnesses(check, finds)))

    def _alone(self, need: Need) -> list[str]:
        """What only this check finds wrong, without calls that raise: any check notices those."""
        return [id for id in need.only if need.check in self._outcomes[id].wrong]

    def _witnesses(self, check: str, finds: Collection[str]) -> tuple[str, ...]:
        """Witnesses for a check: one for each assertion, one of each kind, then for other cases.

        Those that few other checks catch come first.
        """
        kinds = {job.id: type(job) for job in self._jobs if job.id in finds}
        sought = sorted(kinds, key=lambda id: len(self._outcomes[id].cases))
        chosen: list[str] = []

        def choose(aspect: Callable[[str], object], most: int = len(sought)) -> None:
            """Add those in which an aspect is new, until there are `most`."""
            for id in sought:
                if len(chosen) < most and aspect(id) not in map(aspect, chosen):
                    chosen.append(id)

        choose(lambda id: self._outcomes[id].wrong[check])
        choose(kinds.__getitem__)
        choose(lambda id: self._outcomes[id].cases[check], _WITNESSES)
        choose(lambda id: id, _WITNESSES)
        return tuple(chosen)


def _raise(error: BaseException, name: str) -> NoReturn:
    raise error


def _name(check: str) -> str:
    """The check's name in its id."""
    return check.partition(".")[2]


def _change(record: Equivalent) -> str:
    return f"{record.where}: {' / '.join(record.before)} -> {' / '.join(record.after)}"
