"""The stage that a command is about: the one that was named, or where the learner is."""

from __future__ import annotations

import sys

from grader.read.course_file import find_stage
from grader.read.progress import recall
from grader.read.workspace import current_stage
from grader.types.course import Stage
from grader.types.workspace import Workspace


def stage_or_current(workspace: Workspace, word: str | None) -> Stage:
    """The stage of that slug or number; without one where the learner is. Raises KitError."""
    if word is not None:
        return find_stage(workspace.course, word)
    found = recall(workspace.root)
    if found.note:
        print(f"grade: {found.note}", file=sys.stderr)
    return current_stage(workspace, found.progress)
