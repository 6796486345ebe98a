"""Where a learner works: the folder with their files and their progress."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.types.course import Course, Stage


@dataclass(frozen=True)
class Workspace:
    """A learner's folder: `root` holds exercises/ and .grade/; the course may be elsewhere.

    In a checkout of the course `root` is the course's own folder.
    """

    root: Path
    course: Course

    @property
    def exercises(self) -> Path:
        """The folder of the learner's files."""
        return self.root / "exercises"

    @property
    def is_course(self) -> bool:
        """Whether the learner works in the course's own folder, a checkout."""
        return self.root == self.course.root

    def file(self, stage: Stage) -> Path:
        """The learner's file of a stage."""
        return self.exercises / stage.file_name
