"""What is kept of a class: which version of what gave which verdict on what was handed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grader.types.report import Report


@dataclass(frozen=True)
class Version:
    """What a verdict depends on beside the submission, the seed and the device.

    `engine` stands for the engine and the libraries, `stages` for each stage's checks, solutions,
    known mistakes and table, by its slug: where two are equal nothing that matters has changed.
    """

    engine: str
    stages: Mapping[str, str]


@dataclass(frozen=True)
class HandIn:
    """One student's: `content` stands for what counts of it; `notes` say what was odd."""

    student: str
    content: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A line of the ledger: a verdict, and all that it takes to come to it again.

    There is no `report` where nothing could be graded: `notes` then say why; with `is_lost` it was
    the grader that failed. `when` is ISO 8601 in UTC, `seconds` how long it took. `number` is the
    place in the ledger, 0 before it has one.
    """

    hand_in: HandIn
    version: Version
    seed: int
    device: str
    report: Report | None
    when: str
    seconds: float = 0.0
    is_lost: bool = False
    number: int = 0

    @property
    def student(self) -> str:
        """Whose it is."""
        return self.hand_in.student


@dataclass(frozen=True)
class Difference:
    """A verdict that counts and the one that is proposed in its place."""

    before: Entry
    after: Entry
