"""What a command works on: the course of an author or an instructor, the stage of a learner."""

from __future__ import annotations

import argparse
from pathlib import Path

from grader.command.output import complain
from grader.read.course_file import find_stage
from grader.read.progress import recall_present
from grader.read.workspace import current_stage, locate_whole_course, nearest_root
from grader.types.course import Course, Stage
from grader.types.workspace import Workspace


def authors_course(args: argparse.Namespace) -> Course:
    """The whole course, which the command names if this folder has none. Raises KitError."""
    course = locate_whole_course(args.course)
    if args.course is None and nearest_root(Path.cwd()) is None:
        complain(
            f"there is no course in this folder, so this takes the one in {course.root}; to take "
            "another, add --course DIR"
        )
    return course


def stage_or_current(workspace: Workspace, word: str | None) -> Stage:
    """The stage with this slug or number; without one, the current stage. Raises KitError."""
    if word is not None:
        return find_stage(workspace.course, word)
    found = recall_present(workspace)
    if found.note:
        complain(found.note)
    return current_stage(workspace, found.progress)
