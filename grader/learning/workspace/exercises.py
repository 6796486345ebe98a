"""A learner's files and their original stubs, and how to replace a file without losing it."""

from __future__ import annotations

import stat
from pathlib import Path

from grader.read.files import write_whole
from grader.read.progress import make_memory_folder, memory_folder
from grader.read.stubs import keep_copy, read_stub
from grader.read.submission import FILE_CAP
from grader.types.course import Stage
from grader.types.errors import KitError, writing
from grader.types.workspace import Workspace

_BOM = "\ufeff"


def read_work(file: Path) -> bytes | None:
    """The bytes of a learner's file, None if there is none.

    Raises KitError if it cannot be read, is too large or is not a regular file: links are neither
    followed nor replaced.
    """
    try:
        status = file.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise KitError(f"{file}: is a link: put the file itself in its place")
        if not stat.S_ISREG(status.st_mode):
            raise KitError(f"{file}: is not a file: move it out of the way")
        if status.st_size > FILE_CAP:
            raise KitError(f"{file}: is larger than {FILE_CAP >> 20} MiB")
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise KitError(f"{file}: cannot be read: {error.strerror}") from None


def read_text(workspace: Workspace, stage: Stage) -> str:
    """The text of the learner's file. Raises KitError if it is missing or cannot be read."""
    name, work = f"{workspace.exercises.name}/{stage.file_name}", read_work(workspace.file(stage))
    if work is None:
        raise KitError(f"{name} is missing: `grade reset {stage.slug}` restores it")
    text = text_of(work)
    if text is None:
        raise KitError(f"{name}: is not UTF-8: save it as UTF-8")
    return text


def text_of(data: bytes) -> str | None:
    r"""The text of a learner's file with \n at its line ends, None if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def ended_like(data: bytes, text: str) -> str:
    """`text` with the most frequent line ends of `data`, and with its byte order mark."""
    if data.count(b"\r\n") * 2 > data.count(b"\n"):
        text = text.replace("\n", "\r\n")
    return _BOM + text if data.startswith(_BOM.encode()) else text


def write_work(workspace: Workspace, stage: Stage, text: str) -> Path | None:
    """Write `text` as the learner's file; returns the copy of the file that it replaces, if any.

    Raises KitError; the old file is then unchanged.
    """
    file = workspace.file(stage)
    before = read_work(file)
    with writing(file):
        file.parent.mkdir(exist_ok=True)
        copy = None if before is None else keep_copy(file, workspace.root)
        write_whole(file, text)
    return copy


def began_from(workspace: Workspace, stage: Stage) -> str:
    """The original stub of the learner's file. Raises CourseError.

    It is the stub kept in the workspace; without one, and in a checkout, it is the course's stub.
    """
    kept = None if workspace.is_course else kept_stub(workspace, stage)
    return read_stub(stage) if kept is None else kept


def kept_stub(workspace: Workspace, stage: Stage) -> str | None:
    """The stub kept in the workspace, None if it is missing or unreadable."""
    try:
        return text_of((kept_stubs(workspace) / stage.file_name).read_bytes())
    except OSError:
        return None


def keep_stub(workspace: Workspace, stage: Stage, stub: str) -> None:
    """Keep the original stub of the learner's file. Raises KitError."""
    folder = kept_stubs(workspace)
    with writing(folder):
        make_memory_folder(workspace.root)
        folder.mkdir(exist_ok=True)
        write_whole(folder / stage.file_name, stub)


def kept_stubs(workspace: Workspace) -> Path:
    """The folder of the stubs that are kept in a workspace."""
    return memory_folder(workspace.root) / "stubs"
