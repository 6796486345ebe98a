"""Grades a folder of submissions into a ledger, and again what a change may have changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from grader.classroom import all_graded, expect_sound
from grader.engine import Engine, Request
from grader.read.class_folder import Found, read_hand_in
from grader.read.ledger import Ledger
from grader.run.lanes import LaneLost
from grader.types.course import Assignment, Stage
from grader.types.ledger import Difference, Entry, HandIn, Version
from grader.types.report import Report, Status
from grader.types.submission import Submission

_LOST = "The grader itself failed twice at this one ({why}): give these points by hand."


@dataclass(frozen=True)
class _Job:
    """What a lane grades."""

    hand_in: HandIn
    submission: Submission
    seed: int


@dataclass(frozen=True)
class FolderClass:
    """What is graded, by which version, and the ledger that takes it."""

    assignment: Assignment
    version: Version
    ledger: Ledger

    def grade(
        self,
        engine: Engine,
        students: Iterable[Found],
        seed: int,
        lanes: int,
        tell: Callable[[bool], None],
    ) -> None:
        """Grade these students' in so many `lanes`; of each `tell` is told if it is a new verdict.

        What has a verdict and has not changed since keeps it; the same answers of two students are
        graded once.
        Raises KitError where nothing can pass or the ledger cannot be written.
        """

        def jobs() -> Iterator[_Job]:
            for found in students:
                hand_in, submission = read_hand_in(found, engine.course, self.assignment)
                before = self.ledger.latest_of(found.student)
                if before is not None and before.hand_in == hand_in and not before.is_lost:
                    tell(False)
                elif submission is None:
                    self._keep(hand_in, None, engine.device, seed, None, 0.0)
                    tell(True)
                else:
                    job = _Job(hand_in, submission, seed)
                    if self._is_known(job, engine.device, proposed=False):
                        tell(True)
                    else:
                        yield job

        self._grade(engine, jobs(), seed, lanes, tell, proposed=False)

    def regrade(self, engine: Engine, lanes: int, tell: Callable[[bool], None]) -> None:
        """Grade again, each with its seed, what may get another verdict from this version.

        The verdicts are proposed: they count when the ledger has accepted them.
        """

        def jobs() -> Iterator[_Job]:
            for entry in self.affected():
                before = self.ledger.proposed_for(entry.student)
                if before is not None and before.version == self.version:
                    tell(False)
                    continue
                submission = self.ledger.submission(entry.hand_in.content, entry.student)
                if submission is None:
                    continue
                job = _Job(entry.hand_in, submission, entry.seed)
                if self._is_known(job, engine.device, proposed=True):
                    tell(True)
                else:
                    yield job

        self._grade(engine, jobs(), 0, lanes, tell, proposed=True)

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
            return entry.is_lost
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
        engine: Engine,
        jobs: Iterator[_Job],
        seed: int,
        lanes: int,
        tell: Callable[[bool], None],
        *,
        proposed: bool,
    ) -> None:
        stages = self.assignment.stages
        expect_sound(engine, stages, seed)

        def work(lane: Engine) -> Callable[[_Job], tuple[Report, float]]:
            return lambda job: _report(lane, job, stages)

        for job, result in all_graded(engine, jobs, lanes, stages[:1], seed, work):
            if isinstance(result, LaneLost):
                why = _LOST.format(why=result)
                hand_in = replace(job.hand_in, notes=(*job.hand_in.notes, why))
                report, seconds = None, 0.0
            else:
                hand_in, (report, seconds) = job.hand_in, result
            self._keep(
                hand_in,
                job.submission,
                engine.device,
                job.seed,
                report,
                seconds,
                is_lost=report is None,
                proposed=proposed,
            )
            tell(True)

    def _keep(
        self,
        hand_in: HandIn,
        submission: Submission | None,
        device: str,
        seed: int,
        report: Report | None,
        seconds: float,
        *,
        is_lost: bool = False,
        proposed: bool = False,
    ) -> None:
        """Write a verdict down."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        entry = Entry(hand_in, self.version, seed, device, report, now, seconds, is_lost)
        self.ledger.add(entry, submission, proposed=proposed)

    def _is_known(self, job: _Job, device: str, *, proposed: bool) -> bool:
        """Whether this version has judged the same answers, which is written down once more."""
        same = self.ledger.same(job.hand_in.content, self.version, proposed=proposed)
        if same is None or same.report is None or same.device != device:
            return False
        if proposed and same.seed != job.seed:
            return False
        report = replace(same.report, submission=job.hand_in.student)
        self._keep(job.hand_in, None, device, same.seed, report, 0.0, proposed=proposed)
        return True


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


def replayed(
    engine: Engine, entry: Entry, submission: Submission, stages: Sequence[Stage]
) -> Report:
    """The report on what was handed in, with the seed that it was graded with."""
    return _report(engine, _Job(entry.hand_in, submission, entry.seed), stages)[0]


def _report(engine: Engine, job: _Job, stages: Sequence[Stage]) -> tuple[Report, float]:
    start = time.perf_counter()
    submission = replace(job.submission, name=job.hand_in.student)
    report = engine.grade(Request(submission, tuple(stages), job.seed))
    return report, time.perf_counter() - start
