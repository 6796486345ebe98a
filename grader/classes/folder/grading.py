"""Grades a folder of submissions into a ledger, and regrades what a change may affect."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from importlib.machinery import PathFinder

from grader.classes.folder.ledger import Ledger
from grader.classes.folder.renamed import keeping_removed
from grader.classes.folder.students import Found, read_student
from grader.classes.folder.types import LedgerEntry, SubmissionRecord, Version
from grader.classes.grading import all_graded
from grader.classes.sharing.earned import Earned
from grader.engine import Engine, Request, Shared
from grader.judge.verdict import judge_refused
from grader.read.renamed import with_present_names
from grader.run.lanes import LaneLost, can_fork
from grader.types.course import Assignment, Course, Stage
from grader.types.report import Outcome, Report, Status
from grader.types.submission import Submission

_LOST = "The grader failed twice on this submission ({why}): set these points by hand."


@dataclass(frozen=True)
class Job:
    """One submission to grade."""

    record: SubmissionRecord
    submission: Submission
    seed: int
    submitted: Submission | None = None  # to store, with the names of files as they came


Result = tuple[Report, float] | LaneLost
# Results in the order in which they finish; closing it ends what still grades.
Results = Generator[tuple[Job, Result], None, None]
Grader = Callable[[Iterable[Job]], Results]  # grades somewhere


@dataclass(frozen=True)
class FolderClass:
    """One assignment of a course, the version that grades it, and the ledger of the results."""

    course: Course
    assignment: Assignment
    version: Version
    ledger: Ledger

    def grade(
        self, students: Iterable[Found], seed: int, grader: Grader, tell: Callable[[bool], None]
    ) -> None:
        """Grade these students; calls `tell` for each one with whether the verdict is new.

        An unchanged submission keeps its verdict, and the time of submission if there is no other;
        identical answers of two students are graded once, unless a check timed out. Raises KitError
        if the ledger cannot be written, and whatever `grader` raises.
        """

        def jobs() -> Iterator[Job]:
            for found in students:
                record, submission = read_student(found, self.assignment)
                before = self.ledger.latest_of(found.student)
                if before is not None and record.submitted is None:
                    is_same = before.record.content == record.content
                    record = replace(record, submitted=before.record.submitted if is_same else None)
                if before is not None and not before.is_lost and _same_but_for_time(before, record):
                    if before.record != record:
                        self.ledger.add(replace(before, record=record), None)
                    tell(False)
                else:
                    present = with_present_names(submission, self.course.stages)
                    yield Job(record, present, seed, submission)

        self._grade(jobs(), grader, tell, proposed=False)

    def regrade(self, grader: Grader, tell: Callable[[bool], None]) -> None:
        """Regrade, each with its own seed, the submissions that `affected` lists.

        The new verdicts are proposals until the ledger accepts them. Raises whatever `grader`
        raises.
        """

        def jobs() -> Iterator[Job]:
            for entry in self.affected():
                before = self.ledger.latest_of(entry.student, proposed=True)
                if before is not None and before.version == self.version:
                    tell(False)
                elif entry.report is not None and (why := entry.report.refusal):
                    yield Job(entry.record, Submission(entry.student, {}, refused=why), entry.seed)
                else:
                    yield Job(entry.record, self.ledger.submission(entry), entry.seed)

        self._grade(jobs(), grader, tell, proposed=True)

    def affected(self) -> Iterator[LedgerEntry]:
        """The current verdicts that may be different with this version."""
        for student in self.ledger.students():
            entry = self.ledger.latest_of(student)
            if entry is not None and self._may_change(entry):
                yield entry

    def _may_change(self, entry: LedgerEntry) -> bool:
        """Whether the verdict may be different with this version.

        It cannot be if the engine and the stages are the same, unless a library that the code needs
        was missing and is installed now. A stage that is not started stays
        so: stubs pass no check, as `grade verify` proves.
        """
        if entry.report is None:
            return False
        known = {stage.slug for stage in self.course.stages}
        results = [stage for stage in entry.report.stages if stage.slug in known]
        points = {stage.slug: stage.points for stage in self.assignment.stages}
        if points != {stage.slug: stage.max_score for stage in results}:
            return True
        if entry.report.refusal:
            return False
        if _has_come(entry.report.lacking):
            return True
        return entry.version.engine != self.version.engine or any(
            entry.version.stages.get(stage.slug) != self.version.stages.get(stage.slug)
            and stage.status is not Status.NOT_STARTED
            for stage in results
        )

    def _grade(
        self, jobs: Iterable[Job], grader: Grader, tell: Callable[[bool], None], *, proposed: bool
    ) -> None:
        """Grade what needs a run, and keep every verdict."""

        def unknown() -> Iterator[Job]:
            for job in jobs:
                report = self._known(job, proposed=proposed)
                if report is None:
                    yield job
                else:
                    self._keep(replace(job, submitted=None), report, proposed=proposed)
                    tell(True)

        with closing(grader(unknown())) as results:
            for job, result in results:
                if isinstance(result, LaneLost):
                    notes = (*job.record.notes, _LOST.format(why=result))
                    lost = replace(job, record=replace(job.record, notes=notes))
                    self._keep(lost, None, proposed=proposed)
                else:
                    self._keep(job, *result, proposed=proposed)
                tell(True)

    def _keep(
        self, job: Job, report: Report | None, seconds: float = 0.0, *, proposed: bool
    ) -> None:
        """Add a verdict to the ledger, with what was earned in stages that are now removed."""
        if report is not None:
            before = self.ledger.latest_of(job.record.student)
            report = keeping_removed(report, before.report if before else None, self.course)
        now = datetime.now(timezone.utc).replace(microsecond=0)
        device = "" if report is None else report.device
        entry = LedgerEntry(job.record, self.version, job.seed, device, report, now, seconds)
        self.ledger.add(entry, job.submitted, proposed=proposed)

    def _known(self, job: Job, *, proposed: bool) -> Report | None:
        """The report on a submission that cannot be graded, or whose answers are judged already.

        None if this version has not judged them, if a library was missing that is here now, or if a
        check timed out: the machine may have been busy with another submission.
        """
        student = job.record.student
        if job.submission.refused:
            stages = self.assignment.stages
            return judge_refused(self.course, student, stages, job.submission.refused)
        same = self.ledger.same(job.record.content, self.version, proposed=proposed)
        if same is None or same.report is None or same.seed != job.seed:
            return None
        checks = (check for stage in same.report.stages for check in stage.checks)
        if any(check.outcome is Outcome.TIMEOUT for check in checks):
            return None
        if _has_come(same.report.lacking):
            return None
        report = keeping_removed(same.report, None, self.course)
        return replace(report, submission=student)


def graded_here(
    engine: Engine, jobs: Iterable[Job], stages: Sequence[Stage], seed: int, lanes: int
) -> Results:
    """Each job with its result, from `lanes` processes on this machine.

    Raises KitError if the course's own solutions do not pass.
    """
    with Earned(shared=can_fork(engine.device)) as earned:

        def work(lane: Engine) -> Callable[[Job], tuple[Report, float]]:
            return lambda job: graded(lane, job, stages, earned.of)

        yield from all_graded(engine, jobs, lanes, stages, seed, work)


def graded(
    engine: Engine, job: Job, stages: Sequence[Stage], shared: Shared | None = None
) -> tuple[Report, float]:
    """The report on a job, graded with its own seed, and the seconds that it used.

    `shared` is what the class knows already, which needs no rerun; None reruns everything.
    """
    submission = replace(job.submission, name=job.record.student)
    report = engine.grade(Request(submission, tuple(stages), job.seed), shared=shared)
    return report, report.seconds


def _has_come(modules: Iterable[str]) -> bool:
    """Whether one of these modules, which were missing once, is installed now."""
    return any(PathFinder.find_spec(name) is not None for name in modules)


def _same_but_for_time(entry: LedgerEntry, record: SubmissionRecord) -> bool:
    """Whether the verdict is on this submission, whenever it came."""
    return replace(entry.record, submitted=record.submitted) == record


def differences(ledger: Ledger) -> Iterator[tuple[LedgerEntry, LedgerEntry]]:
    """The current and the proposed verdict where the points of any check change."""
    for after in ledger.proposed():
        before = ledger.latest_of(after.student)
        if before is not None and _points(before) != _points(after):
            yield before, after


def _points(entry: LedgerEntry) -> object:
    """The points of every check: if these agree, the verdict has not changed."""
    if entry.report is None:
        return None
    return [
        (check.id, check.score, check.max_score)
        for stage in entry.report.stages
        for check in stage.checks
    ]
