"""What nbgrader's gradebook knows of a released notebook, and what a verdict writes into it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReleasedCell:
    """A cell that a student was given and has to give back; `points` if it is one that grades."""

    grade_id: str
    cell_type: str
    source: str
    locked: bool
    checksum: str | None
    solution: bool = False
    points: float | None = None


@dataclass(frozen=True)
class CellVerdict:
    """The points of a cell that grades, None if nobody knows; `reason` is HTML, `comment` text.

    `grade_id` is the cell's, `answer_id` that of the cell with the answer, where comments stand.
    """

    grade_id: str
    answer_id: str
    points: float | None
    max_points: float
    reason: str
    comment: str


@dataclass(frozen=True)
class Graded:
    """One student's points, None where somebody has to look; `notes` say what was odd."""

    student: str
    points: float | None
    max_points: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class NotebookVerdict:
    """What becomes of one notebook: `summary` is HTML for its top."""

    cells: tuple[CellVerdict, ...]
    summary: str
