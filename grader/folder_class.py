"""Grades a folder of submissions into a ledger, and again what a change may have changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from grader.classroom import all_graded
from grader.engine import Engine, Request
from grader.read.class_folder import Found, read_hand_in
from grader.read.ledger import Ledger
from grader.run.earned import Earned
from grader.run.lanes import LaneLost, can_fork
from grader.types.course import Assignment, Stage
from grader.types.ledger import Difference, Entry, HandIn, Version
from grader.types.report import Report, Status
from grader.types.submission import Submission

_LOST = "The grader itself failed twice at this one ({why}): give these points by hand."


@dataclass(frozen=True)
class Job:
    """What is graded at a time."""

    hand_in: HandIn
    submission: Submission
    seed: int


Result = tuple[Report, float] | LaneLost
# What has each job done somewhere: the report and the seconds that it took, as they come.
Grader = Callable[[Iterable[Job]], Iterator[tuple[Job, Result]]]


@dataclass(frozen=True)
class FolderClass:
    """What is graded, by which version, and the ledger that takes it."""

    assignment: Assignment
    version: Version
    ledger: Ledger

    def grade(
        self,
        students: Iterable[Found],
        seed: int,
        grader: Grader,
        tell: Callable[[bool], None],
    ) -> None:
        """Have these students' graded; of each `tell` is told if it is a new verdict.

        What has a verdict and has not changed since keeps it; the same answers of two students are
        graded once. Raises KitError where the ledger cannot be written, and what `grader` does.
        """

        def jobs() -> Iterator[Job]:
            for found in students:
                hand_in, submission = read_hand_in(found, self.assignment)
                before = self.ledger.latest_of(found.student)
                if before is not None and before.hand_in == hand_in and not before.is_lost:
                    tell(False)
                elif submission is None:
                    self._keep(hand_in, None, seed, None, 0.0)
                    tell(True)
                else:
                    job = Job(hand_in, submission, seed)
                    if self._is_known(job, proposed=False):
                        tell(True)
                    else:
                        yield job

        self._grade(grader(jobs()), tell, proposed=False)

    def regrade(self, grader: Grader, tell: Callable[[bool], None]) -> None:
        """Grade again, each with its seed, what may get another verdict from this version.

        The verdicts are proposed: they count when the ledger has accepted them.
        """

        def jobs() -> Iterator[Job]:
            for entry in self.affected():
                before = self.ledger.proposed_for(entry.student)
                if before is not None and before.version == self.version:
                    tell(False)
                    continue
                submission = self.ledger.submission(entry.hand_in.content, entry.student)
                if submission is None:
                    continue
                job = Job(entry.hand_in, submission, entry.seed)
                if self._is_known(job, proposed=True):
                    tell(True)
                else:
                    yield job

        self._grade(grader(jobs()), tell, proposed=True)

    def affected(self) -> Iterator[Entry]:
        """The verdicts that count and that this version may not come to."""
        for student in self.ledger.students():
            entry = self.ledger.latest_of(student)
            if entry is not None and self._may_change(entry):
                yield entry

    def _may_change(self, entry: Entry) -> bool:
        """Whether this version may come to another verdict.

        It may not where engine and stages are the same, nor in a stage that is not begun: stubs
        pass no check, as `grade verify` proves.
        """
        if entry.report is None:
            return False
        points = {stage.slug: stage.points for stage in self.assignment.stages}
        if entry.version.engine != self.version.engine:
            return True
        if points != {stage.slug: stage.max_score for stage in entry.report.stages}:
            return True
        return any(
            entry.version.stages.get(stage.slug) != self.version.stages.get(stage.slug)
            and stage.status is not Status.NOT_STARTED
            for stage in entry.report.stages
        )

    def _grade(
        self,
        results: Iterator[tuple[Job, Result]],
        tell: Callable[[bool], None],
        *,
        proposed: bool,
    ) -> None:
        for job, result in results:
            if isinstance(result, LaneLost):
                why = _LOST.format(why=result)
                hand_in = replace(job.hand_in, notes=(*job.hand_in.notes, why))
                lost = (hand_in, job.submission, job.seed, None, 0.0)
                self._keep(*lost, is_lost=True, proposed=proposed)
            else:
                self._keep(job.hand_in, job.submission, job.seed, *result, proposed=proposed)
            tell(True)

    def _keep(
        self,
        hand_in: HandIn,
        submission: Submission | None,
        seed: int,
        report: Report | None,
        seconds: float,
        *,
        is_lost: bool = False,
        proposed: bool = False,
    ) -> None:
        """Write a verdict down."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        device = "" if report is None else report.device
        entry = Entry(hand_in, self.version, seed, device, report, now, seconds, is_lost)
        self.ledger.add(entry, submission, proposed=proposed)

    def _is_known(self, job: Job, *, proposed: bool) -> bool:
        """Whether this version has judged the same answers, which is written down once more."""
        same = self.ledger.same(job.hand_in.content, self.version, proposed=proposed)
        if same is None or same.report is None or same.seed != job.seed:
            return False
        report = replace(same.report, submission=job.hand_in.student)
        self._keep(job.hand_in, None, same.seed, report, 0.0, proposed=proposed)
        return True


def graded_here(
    engine: Engine, jobs: Iterable[Job], stages: Sequence[Stage], seed: int, lanes: int
) -> Iterator[tuple[Job, Result]]:
    """The jobs done on this machine, so many at a time. Raises KitError where nothing can pass."""
    with Earned(shared=can_fork(engine.device)) as earned:

        def work(lane: Engine) -> Callable[[Job], tuple[Report, float]]:
            return lambda job: graded(lane, job, stages, earned)

        yield from all_graded(engine, jobs, lanes, stages, seed, work)


def graded(
    engine: Engine, job: Job, stages: Sequence[Stage], earned: Earned | None = None
) -> tuple[Report, float]:
    """The report on a job, with its own seed, and the seconds that it took.

    `earned` is what the class has earned so far; without it all is run.
    """
    start = time.perf_counter()
    submission = replace(job.submission, name=job.hand_in.student)
    report = engine.grade(Request(submission, tuple(stages), job.seed), earned=earned)
    return report, time.perf_counter() - start


def differences(ledger: Ledger) -> Iterator[Difference]:
    """Where the proposed verdicts give other points, or the same ones for other checks."""
    for after in ledger.proposed():
        before = ledger.latest_of(after.student)
        if before is not None and _points(before) != _points(after):
            yield Difference(before, after)


def _points(entry: Entry) -> object:
    """What must agree for nothing to have changed: the points of every check."""
    if entry.report is None:
        return None
    return [
        (check.id, check.score, check.max_score)
        for stage in entry.report.stages
        for check in stage.checks
    ]
