"""Brings the stubs of a newer course into a workspace. Killed at any moment, it loses no work.

First it renames what belongs to stages that were renamed. Then, for each stage, it writes a copy of
the learner's file, then the file, then the kept stub. After an interruption, the next run repeats
the unfinished steps.
"""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from grader.learning.workspace.exercises import (
    ended_like,
    keep_stub,
    kept_stub,
    kept_stubs,
    read_work,
    text_of,
    write_work,
)
from grader.learning.workspace.merge import merge
from grader.read.files import write_whole
from grader.read.progress import make_memory_folder, memory_folder, recall, update_progress
from grader.read.stubs import keep_copy, read_stub, same_but_for_words
from grader.types.course import Stage
from grader.types.errors import KitError, writing
from grader.types.progress import Progress
from grader.types.workspace import Workspace


class Update(Enum):
    """What the update did to a learner's file."""

    NONE = "up to date"
    ADDED = "new"
    RENEWED = "replaced by the new stub"
    MERGED = "the course's changes are merged into your work"
    LEFT = "unchanged"  # the new stub is beside it


@dataclass(frozen=True)
class Updated:
    """The update of one stage: `copy` is a copy of the replaced file.

    For an unchanged file, `beside` is its new stub, and `why` says what prevented the update.
    """

    stage: Stage
    update: Update
    copy: Path | None = None
    beside: Path | None = None
    why: str = ""


def update_workspace(workspace: Workspace) -> list[Updated]:
    """Update every stage. Raises CourseError before writing anything, or KitError."""
    stubs = {stage: read_stub(stage) for stage in workspace.course.stages}
    return [_update(workspace, stage, stub) for stage, stub in stubs.items()]


@dataclass(frozen=True)
class Renamed:
    """A stage whose file was called `old`; without `is_done` the learner has begun both files."""

    stage: Stage
    old: str
    is_done: bool


def rename_stages(workspace: Workspace) -> list[Renamed]:
    """Rename the learner's files of stages that were renamed, and their progress.

    Raises CourseError, KitError or ProgressError.
    """
    found = []
    for stage in workspace.course.stages:
        for old in stage.formerly:
            file = workspace.exercises / f"{old}.py"
            stub = kept_stubs(workspace) / file.name
            if stub.is_file() and os.path.lexists(file):
                with writing(file):
                    found.append(Renamed(stage, old, _moved(workspace, stage, file, stub)))

    def with_present_slugs(progress: Progress) -> Progress:
        for old, slug in workspace.course.renamed.items():
            progress = progress.renamed(old, slug)
        return progress

    known = recall(workspace.root).progress
    if with_present_slugs(known) != known:
        update_progress(workspace.root, with_present_slugs)
    return found


def still_importing(workspace: Workspace, old: str) -> list[Path]:
    """The learner's files with a line that imports a module of this name."""
    imports = re.compile(rf"^[ \t]*(from|import)\s+{old}\b", re.MULTILINE)
    files = (file for file in sorted(workspace.exercises.glob("*.py")) if file.is_file())
    return [file for file in files if imports.search(text_of(file.read_bytes()) or "")]


def _moved(workspace: Workspace, stage: Stage, file: Path, stub: Path) -> bool:
    """Give a file and its kept stub the stage's present name, unless the learner uses that too.

    Raises OSError, CourseError.
    """
    here = workspace.file(stage)
    if os.path.lexists(here):
        given = kept_stub(workspace, stage) or read_stub(stage)
        try:
            text = text_of(read_work(here) or b"")
        except KitError:
            text = None
        if text is None or not same_but_for_words(text, given):
            return False
        keep_copy(here, workspace.root)
        here.unlink()
    # The stub comes first, so that the update can merge into the file if we are stopped here.
    keep_stub(workspace, stage, text_of(stub.read_bytes()) or "")
    file.rename(here)
    stub.unlink()
    return True


def gone_stages(workspace: Workspace) -> list[Path]:
    """The learner's files of stages that the course no longer has."""
    known = {stage.file_name for stage in workspace.course.stages}
    kept = sorted(file.name for file in kept_stubs(workspace).glob("*.py"))
    files = [workspace.exercises / name for name in kept if name not in known]
    return [file for file in files if os.path.lexists(file)]


def _update(workspace: Workspace, stage: Stage, stub: str) -> Updated:
    base = kept_stub(workspace, stage)
    if base == stub and os.path.lexists(workspace.file(stage)):
        return Updated(stage, Update.NONE)
    try:
        work = read_work(workspace.file(stage))
    except KitError as error:
        done = _left(workspace, stage, stub, str(error))
    else:
        done = _brought(workspace, stage, base, work, stub)
    if base != stub:
        keep_stub(workspace, stage, stub)
    return done


def _brought(
    workspace: Workspace, stage: Stage, base: str | None, work: bytes | None, stub: str
) -> Updated:
    """Merge the stub into the learner's file, or write it beside it."""
    if work is None:
        write_work(workspace, stage, stub)
        return Updated(stage, Update.ADDED)
    text = text_of(work)
    if text is None:
        return _left(workspace, stage, stub, f"{workspace.file(stage)}: is not UTF-8")
    if base is not None and _was_stopped_here(workspace, stage, base, text, stub):
        return Updated(stage, Update.NONE)
    merged = None if base is None else _merged(base, text, stub)
    if merged is None and same_but_for_words(text, stub if base is None else base):
        merged = stub
    if merged is None:
        return _left(workspace, stage, stub, "")
    if merged == text:
        return Updated(stage, Update.NONE)
    copy = write_work(workspace, stage, ended_like(work, merged))
    return Updated(stage, Update.RENEWED if merged == stub else Update.MERGED, copy)


def _was_stopped_here(workspace: Workspace, stage: Stage, base: str, text: str, stub: str) -> bool:
    """Whether an interrupted update has already merged `text` from the copy that it kept.

    Merging it again could duplicate lines.
    """
    folder = memory_folder(workspace.root) / "replaced"
    copies = [text_of(copy.read_bytes()) for copy in folder.glob(f"{stage.file_name}-*")]
    return any(copy is not None and _merged(base, copy, stub) == text for copy in copies)


def _merged(base: str, text: str, stub: str) -> str | None:
    """The learner's text with the stub's changes, None if they cannot be merged."""
    merged = merge(base, text, stub)
    return None if merged is None or (_is_python(text) and not _is_python(merged)) else merged


def _left(workspace: Workspace, stage: Stage, stub: str, why: str) -> Updated:
    beside = memory_folder(workspace.root) / "new" / stage.file_name
    with writing(beside):
        make_memory_folder(workspace.root)
        beside.parent.mkdir(exist_ok=True)
        write_whole(beside, stub)
    return Updated(stage, Update.LEFT, beside=beside, why=why)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
