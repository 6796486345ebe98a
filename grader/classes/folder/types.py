"""What the ledger of a class keeps, and what a cluster receives to grade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from grader.types.course import Limits
from grader.types.report import Report


@dataclass(frozen=True)
class Version:
    """What a verdict depends on besides the submission, the seed and the device.

    `engine` is a digest of the engine and the libraries. `stages` holds for each slug a digest of
    the stage's checks, solution, misconceptions and table. Equal versions give equal verdicts.
    """

    engine: str
    stages: Mapping[str, str]


@dataclass(frozen=True)
class SubmissionRecord:
    """One student's submission: a digest of its `content`, and `notes` on what was unusual.

    `submitted` is when, in UTC, if that is known.
    """

    student: str
    content: str
    notes: tuple[str, ...] = ()
    submitted: datetime | None = None


@dataclass(frozen=True)
class LedgerEntry:
    """A verdict in the ledger, and everything needed to reproduce it.

    If the grader failed, it `is_lost`: there is no `report`, and the notes say why. `when` is in
    UTC, `seconds` how long grading took. `number` is the place in the ledger, 0 before the entry is
    added.
    """

    record: SubmissionRecord
    version: Version
    seed: int
    device: str
    report: Report | None
    when: datetime
    seconds: float = 0.0
    number: int = 0

    @property
    def student(self) -> str:
        """The student's name."""
        return self.record.student

    @property
    def is_lost(self) -> bool:
        """Whether the grader failed, so that a person has to set the points."""
        return self.report is None

    @property
    def is_refused(self) -> bool:
        """Whether the submission could not be graded: the notes say why."""
        return self.report is not None and bool(self.report.refusal)

    @property
    def unusual(self) -> tuple[str, ...]:
        """What was unusual about the submission, and what grading it showed."""
        told = () if self.report is None or self.is_refused else self.report.for_instructors
        return (*self.record.notes, *told)


@dataclass(frozen=True)
class ClusterWork:
    """What a Dask worker receives once: the course's files by path, and how to grade."""

    files: Mapping[str, bytes]
    engine: str
    slugs: tuple[str, ...]
    limits: Limits
    device: str
    unlocked: bool
