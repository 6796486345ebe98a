"""Finds the course and the workspace that a command works on; a workspace bears a mark."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from grader.read.course_file import FILE_NAME, read_course
from grader.read.files import write_whole
from grader.read.progress import make_memory_folder, memory_folder
from grader.types.course import Course, Stage
from grader.types.errors import KitError
from grader.types.progress import Progress
from grader.types.report import Status
from grader.types.workspace import Workspace

SCHEMA = 1
_MARK = "workspace.json"
_NAMED = "GRADE_COURSE"  # nbgrader's configuration sets it, for the kernels that it starts
_UNWRITTEN = re.compile(rb"^\s*raise NotImplementedError\b", re.MULTILINE)


def locate_course(path: Path | None) -> Course:
    """The course that a command works on. Raises KitError.

    `path` is the course's folder or its course.toml; GRADE_COURSE in the environment may name it
    too. Without one it is the course of the workspace or the nearest course above the working
    folder, and failing both the one that came with this package.
    """
    if path is None and os.environ.get(_NAMED):
        path = Path(os.environ[_NAMED])
    if path is not None:
        file = path / FILE_NAME if path.is_dir() else path
        if file.name != FILE_NAME or not file.is_file():
            raise KitError(f"{path}: is no course: there is no {FILE_NAME}")
        return read_course(file)
    nearest = nearest_root(Path.cwd())
    if nearest is None:
        return own_course()
    return course_of(nearest) if is_workspace(nearest) else read_course(nearest / FILE_NAME)


def locate_whole_course(path: Path | None) -> Course:
    """As `locate_course`, for what needs all checks and solutions. Raises KitError."""
    course = locate_course(path)
    if course.is_partial:
        raise KitError("this is a student's copy of the course: do that with the whole one")
    return course


def locate_workspace(course: Path | None) -> Workspace:
    """The workspace that a learner's command works in. Raises KitError.

    It is the nearest folder, from the working folder upwards, that `grade init` made or that is a
    course's own. `course` is the course to use in place of the workspace's own, as for
    `locate_course`; without a workspace its folder is one, unless it is the installed one.
    """
    found = locate_course(course)
    nearest = nearest_root(Path.cwd())
    if nearest is not None and is_workspace(nearest):
        return Workspace(nearest, found)
    if found.root == installed_folder() or (course is None and nearest is None):
        raise KitError("you are not in a workspace: `grade init` makes one here, or go to yours")
    return Workspace(found.root, found)


def mark_workspace(root: Path, course: Course) -> None:
    """Make `root` a workspace for `course`. Raises KitError for a folder that cannot be written."""
    is_own = course.root in (installed_folder(), installed_folder().parent)
    mark = {"schema": SCHEMA, "course": None if is_own else str(course.root)}
    try:
        make_memory_folder(root)
        write_whole(_mark(root), json.dumps(mark) + "\n")
    except OSError as error:
        raise KitError(f"{root}: cannot be written: {error.strerror}") from None


def nearest_root(start: Path) -> Path | None:
    """The nearest workspace or course folder, from `start` upwards."""
    for folder in (start, *start.parents):
        if is_workspace(folder) or (folder / FILE_NAME).is_file():
            return folder
    return None


def is_workspace(root: Path) -> bool:
    """Whether `grade init` has made `root` a workspace."""
    return _mark(root).is_file()


def own_course() -> Course:
    """The course that came with this package: its checkout's or the installed one. KitError."""
    for folder in (installed_folder().parent, installed_folder()):
        if (folder / FILE_NAME).is_file():
            return read_course(folder / FILE_NAME)
    raise KitError(
        f"no {FILE_NAME} here or above: go to the course's folder, or name it with --course"
    )


def installed_folder() -> Path:
    """Where a course lies that was installed together with this package: beside it."""
    return Path(__file__).resolve().parents[2] / "grader_course"


def current_stage(workspace: Workspace, progress: Progress) -> Stage:
    """The stage that a learner is at: the first that is not done.

    A graded stage is done if it passed. One that was never graded is done if nothing in its file is
    left to write, but not while it is the one that the last hint was for.
    """
    for stage in workspace.course.stages:
        status = progress.stage(stage.slug).status
        if status is None:
            done = stage.slug != progress.last_hint and not _is_unwritten(workspace.file(stage))
        else:
            done = status is Status.PASSED
        if not done:
            return stage
    return workspace.course.stages[-1]


def _is_unwritten(file: Path) -> bool:
    try:
        return _UNWRITTEN.search(file.read_bytes()) is not None
    except OSError:
        return True


def _mark(root: Path) -> Path:
    return memory_folder(root) / _MARK


def course_of(root: Path) -> Course:
    """The course that a workspace's mark names. Raises KitError."""
    mark = _mark(root)
    try:
        data = json.loads(mark.read_bytes())
    except (OSError, ValueError, RecursionError):
        data = None
    course = data.get("course") if isinstance(data, dict) else data
    if not isinstance(data, dict) or not isinstance(course, (str, type(None))):
        raise KitError(f"{mark}: cannot be understood: `grade init` in {root} writes it anew")
    if data.get("schema") != SCHEMA:
        raise KitError(f"{mark}: was written by another version of the kit: update it")
    return own_course() if course is None else locate_course(Path(course))
