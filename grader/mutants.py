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
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from grader.misconceptions import Misconception
from grader.read.author_files import check_place
from grader.read.misconceptions import read_misconceptions
from grader.read.mutants import no_checks, read_records
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
    Escape,
    Fate,
    Mutant,
    MutantsReport,
    Need,
    Overlap,
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
_WITNESSES = 3  # of a check, at least, if there are as many

Progress = Callable[[str, int, int], None]
# A case, and the lines of the check that found the answer wrong, unless the call raised an error.
_Failure = tuple[str, Sequence[int] | None]
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

    return with_checks(course, stages, body, seconds=course.limits.load_seconds)


def _core_seconds() -> float:
    """The processor time that this process and its forks have used."""
    return sum(os.times()[:4])


@dataclass(frozen=True)
class _Told:
    """What a fork tells of a mutant or a misconception: the checks that failed, each with its case.

    `wrong` are the checks that were not content, not those whose call raised an error, each with
    the lines of it that found so.
    """

    cases: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
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
        self._told: dict[str, _Told] = {}  # by the id of a mutant or a misconception
        self._witnessed: dict[str, set[str]] = defaultdict(set)  # checks by a witness' id
        for check, overlap in records.overlaps.items():
            for witness in overlap.catches:
                self._witnessed[witness].add(f"{stage.slug}.{check}")
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
            self._find_blunt_checks()
        self._is_done = True

    def result(self) -> StageTrials:
        """What is known."""
        trials = tuple(self._trial(m) for m in self._mutants if m.id in self._told)
        needs: tuple[Need, ...] = ()
        escapes: tuple[Escape, ...] = ()
        problems = list(self._problems)
        if self._is_done:
            problems += [*self._passing_problems(), *self._record_problems()]
            escapes = tuple(self._escapes())
            if self._needed:
                needs = tuple(self._needs())
                problems += self._overlap_problems(needs)
        slug, count = self._stage.slug, len(self._mutants)
        return StageTrials(slug, count, trials, needs, escapes, tuple(problems), self._skipped)

    @property
    def _jobs(self) -> tuple[Mutant | Misconception, ...]:
        return (*self._mutants, *self._mistakes)

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
        """Run all mutants and misconceptions."""
        work = self._every_check if self._needed else self._first_check
        for mutant, told in self._forked(self._mutants, work):
            self._told[mutant.id] = told
            self._telling.update((mutant.where, case) for case in told.cases.values())
            self._progress(self._stage.slug, len(self._told), len(self._mutants))
        for mistake, told in self._forked(self._mistakes, work):
            self._told[mistake.id] = told

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
                    cases = {self._cases[case].check: case for case, _ in said}
                    wrong = {
                        self._cases[case].check: tuple(lines)
                        for case, lines in said
                        if lines is not None
                    }
                    yield job, _Told(cases, wrong)

    # What follows runs in a fork.

    def _first_check(self, job: Mutant | Misconception) -> list[_Failure]:
        """A case of every check that it is a witness of; if it is none, or passes, the first.

        Cases that cost little and have told much come first.
        """
        checks = self._witnessed.get(job.id, ())
        cases = self._cases.values()
        found = list(self._failing(job, [case for case in cases if case.check in checks]))
        where = job.replaces if isinstance(job, Misconception) else job.where
        order = sorted(
            cases, key=lambda case: self._seconds[case.id] / (1 + self._telling[where, case.id])
        )
        return found or list(islice(self._failing(job, order), 1))

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
                yield fact.case.id, fact.lines if fact.has_judged else None

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
        if told.cases:
            return Trial(mutant.id, Fate.CAUGHT, tuple(told.cases))
        if mutant.change in {record.change for record in self._records.equivalent}:
            return Trial(mutant.id, Fate.EXPLAINED)
        return Trial(
            mutant.id, Fate.LIVE, diff=self._diff(mutant), record=Equivalent(*mutant.change, "")
        )

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
        planned = self._checks.planned[self._stage.slug]
        yield from no_checks(self._records, [_name(check.id) for check in planned])
        for check, overlap in self._records.overlaps.items():
            for witness in overlap.catches:
                if witness not in self._told:
                    said = f"'{witness}' is no mutant and no misconception (any more)"
                    yield f"{place}: overlaps.{check}: {said}: --needed prints what to write"

    def _passing_problems(self) -> Iterator[str]:
        """Misconceptions that no check finds wrong."""
        place = self._stage.place(self._stage.misconceptions_file)
        for mistake in self._mistakes:
            told = self._told[mistake.id]
            if not told.cases and told.lost is None:
                said = f"the misconception {mistake.id} passes every check"
                yield f"{place}: {said}: sharpen a check, or remove it"

    def _escapes(self) -> Iterator[Escape]:
        """Witnesses that their check, if it runs at all, finds wrong no more."""
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
        """Whether the check finds it wrong, as far as is known of one that was lost."""
        told = self._told.get(id)
        return told is not None and (told.lost is not None or check in told.wrong)

    def _overlap_problems(self, needs: Sequence[Need]) -> Iterator[str]:
        """Checks that nothing needs, without a word on why they are there; and the other way."""
        for need in needs:
            recorded = self._records.overlaps.get(_name(need.check))
            if need.overlap is not None and recorded is None:
                place = check_place(self._stage, need.check)
                said = f"{need.check} finds nothing wrong but what other checks catch too"
                yield f"{place}: {said}: sharpen it, or give the reason under [overlaps]"
            elif self._alone(need) and recorded is not None:
                place = f"{self._records.place}: overlaps.{_name(need.check)}"
                yield f"{place}: the check alone finds {self._alone(need)[0]}: remove the record"

    def _needs(self) -> Iterator[Need]:
        """What each check alone catches, and the record that it lacks, if it lacks one."""
        for check in dict.fromkeys(case.check for case in self._cases.values()):
            only = [id for id, told in self._told.items() if tuple(told.cases) == (check,)]
            need = Need(check, tuple(only))
            finds = [id for id, told in self._told.items() if check in told.wrong]
            recorded = self._records.overlaps.get(_name(check))
            is_told = recorded and all(self._is_witness(check, id) for id in recorded.catches)
            if self._alone(need) or not finds or is_told:
                yield need
            else:
                reason = recorded.reason if recorded else ""
                yield replace(need, overlap=Overlap(reason, self._witnesses(check, finds)))

    def _alone(self, need: Need) -> list[str]:
        """What the check alone finds wrong: that its call raises needs no assertion."""
        return [id for id in need.only if need.check in self._told[id].wrong]

    def _witnesses(self, check: str, finds: Iterable[str]) -> tuple[str, ...]:
        """One for each assertion that finds any, one of each kind, then for other cases.

        Those that few other checks catch come first.
        """
        rank = {job.id: at for at, job in enumerate(self._jobs)}
        kinds = {job.id: type(job) for job in self._jobs}
        sought = sorted(finds, key=lambda id: (len(self._told[id].cases), rank[id]))
        lines = {id: self._told[id].wrong[check] for id in sought}
        cases = {id: self._told[id].cases[check] for id in sought}
        chosen: list[str] = []
        differing: Sequence[tuple[Mapping[str, object], int]] = (
            *((lines, len(sought)), (kinds, len(sought))),
            *((cases, _WITNESSES), (rank, _WITNESSES)),
        )
        for by, enough in differing:
            for id in sought:
                is_new = all(by[id] != by[other] for other in chosen)
                if is_new and len(chosen) < enough:
                    chosen.append(id)
        return tuple(chosen)


def _name(check: str) -> str:
    """A check's name, of its id."""
    return check.partition(".")[2]


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
