"""Which part of a submission is run for a stage: of a notebook with a deadly cell not all of it.

A cell that never ends, or ends its process, would cost every stage its points. So from then on each
stage is run with the cells that it needs alone; if the deadly one is among these, only what the
cells define is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from grader.run.cells import needed
from grader.run.reader import SourceReader
from grader.types.course import Course, Stage
from grader.types.submission import Submission

_CELLS_CAP = 500  # of a notebook from which those are chosen that a stage needs
DEADLY_CELL = (
    "a cell does not come to its end or ends its process, so each stage was run with the cells "
    "that it needs alone"
)
_DEADLY_ANSWER = "of such a cell that a stage needs, only the definitions were run"


class Parts:
    """What is run of one submission, and what is known of its deadly cells."""

    def __init__(self, course: Course, submission: Submission, source: SourceReader) -> None:
        self._course = course
        self._submission = submission
        self._source = source
        self.has_deadly_cell = False  # one was met: run no more cells than a stage needs
        self.has_deadly_answer = False  # a stage needs one: its definitions alone were run

    def needed(self, stage: Stage) -> Submission:
        """What is run for a stage; all of it where what the stage asks for is nowhere in it.

        Of a notebook with tests it is only the cells that these need: it is run again and again.
        """
        submission = self._submission
        if submission.cells is None or not (self.has_deadly_cell or stage.fixture):
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
        """Whether other cells than all of them are run for a stage."""
        return self.needed(stage) != self._submission

    @property
    def notes(self) -> Iterator[str]:
        """What the report says about it."""
        if self.has_deadly_cell:
            yield DEADLY_CELL
        if self.has_deadly_answer:
            yield _DEADLY_ANSWER
