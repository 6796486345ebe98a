"""A released notebook as nbgrader's gradebook has it, and the verdict to write into it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReleasedCell:
    """A cell of the released notebook; a graded cell has `points`."""

    grade_id: str
    cell_type: str
    source: str
    locked: bool
    checksum: str | None
    solution: bool = False
    points: float | None = None


@dataclass(frozen=True)
class CellVerdict:
    """The points of a graded cell, None if unknown; `reason` is HTML, `comment` is text.

    `answer_id` is the id of the cell with the answer, to which nbgrader attaches comments.
    """

    grade_id: str
    answer_id: str
    points: float | None
    max_points: float
    reason: str
    comment: str


@dataclass(frozen=True)
class Graded:
    """One student's points, None if a person has to set them; `notes` say what was unusual.

    If it `is_late`, a penalty is to be taken from the points.
    """

    student: str
    points: float | None
    max_points: float
    notes: tuple[str, ...]
    is_late: bool = False


@dataclass(frozen=True)
class NotebookVerdict:
    """The verdict on one notebook: `summary` is HTML for its top, `seconds` how long it took.

    `notes` say what grading it showed.
    """

    cells: tuple[CellVerdict, ...]
    summary: str
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
