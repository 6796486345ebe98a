"""Which part of a submission is run for a stage: not all of a notebook that has a deadly cell.

A cell that never ends, or ends its process, would cost every stage its points. So once one is met,
each stage is run with only the cells that it needs; if the deadly cell is among these, only the
definitions in the cells are run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from grader.run.cells import needed
from grader.run.reader import SourceReader
from grader.types.course import Course, Stage
from grader.types.submission import Submission

_CELLS_CAP = 500  # cells of a notebook; in a larger one, a stage's cells are not picked out
DEADLY_CELL = (
    "a cell takes too long or ends its process, so each stage was run with only the cells it needs"
)
DEADLY_ANSWER = "where a stage needs such a cell, only the definitions in its cells were run"


class Parts:
    """Which part of one submission to run, and what is known of its deadly cells."""

    def __init__(self, course: Course, submission: Submission, source: SourceReader) -> None:
        self._course = course
        self._submission = submission
        self._source = source
        self.has_deadly_cell = False  # a deadly cell was met: run only the cells that a stage needs
        self.has_deadly_answer = False  # a stage needs a deadly cell: only definitions were run

    def needed(self, stage: Stage) -> Submission:
        """The part to run for a stage; everything if nothing defines what the stage asks for.

        If the stage asks for tests, it is only the cells that these need, because they run many
        times.
        """
        is_cut = self.has_deadly_cell or stage.fixture
        return self.alone(stage) if is_cut else self._submission

    def alone(self, stage: Stage) -> Submission:
        """The part with only the cells that a stage needs, if it is known which these are."""
        submission = self._submission
        if submission.cells is None:
            return submission
        names = None
        if len(submission.cells) <= _CELLS_CAP:
            names = self._source.names(submission.cells)
        if names is None:
            return submission
        known = dict(zip(submission.cells, names, strict=True))
        cells = needed(self._course, stage, submission.cells, known.__getitem__)
        return replace(submission, cells=cells or submission.cells)

    def is_cut(self, stage: Stage) -> bool:
        """Whether a stage is run with only some of the cells."""
        return self.needed(stage) != self._submission

    @property
    def notes(self) -> Iterator[str]:
        """What the report says about this."""
        if self.has_deadly_cell:
            yield DEADLY_CELL
        if self.has_deadly_answer:
            yield DEADLY_ANSWER
