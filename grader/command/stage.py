"""The stage of a command: the named one, or the learner's current stage."""

from __future__ import annotations

from grader.command.output import complain
from grader.read.course_file import find_stage
from grader.read.progress import recall_present
from grader.read.workspace import current_stage
from grader.types.course import Stage
from grader.types.workspace import Workspace


def stage_or_current(workspace: Workspace, word: str | None) -> Stage:
    """The stage with this slug or number; without one, the current stage. Raises KitError."""
    if word is not None:
        return find_stage(workspace.course, word)
    found = recall_present(workspace)
    if found.note:
        complain(found.note)
    return current_stage(workspace, found.progress)
