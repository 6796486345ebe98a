"""A folder, a .py file or an .ipynb -> Submission. Nothing is imported, no link is followed."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from grader.types.errors import SubmissionFileError
from grader.types.submission import Submission

FILE_CAP = 1 << 20  # bytes of one file
NOTEBOOK_CAP = 32 << 20  # bytes of a notebook, whose pictures are in it
FILES_CAP = 200  # files of one folder, and folders in it
FOLDER_CAP = 8 << 20  # bytes of all its files
DEPTH_CAP = 10  # folders in folders
_SKIPPED = frozenset({"__pycache__", ".ipynb_checkpoints", ".git", ".venv", "venv", "node_modules"})


def read_submission(path: Path) -> Submission:
    """The submission at `path`.

    Raises SubmissionFileError for no such path, a link, something that is not a regular file or is
    larger than the caps, and for a notebook that is not one.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise SubmissionFileError(f"{path}: cannot be read: {error.strerror}") from None
    if stat.S_ISDIR(mode):
        return Submission(str(path), _folder(path))
    if path.suffix == ".py":
        return Submission(str(path), {path.name: regular_bytes(path, FILE_CAP)}, script=path.name)
    if path.suffix == ".ipynb":
        return Submission(
            str(path), {}, cells=parse_cells(regular_bytes(path, NOTEBOOK_CAP), str(path))
        )
    raise SubmissionFileError(f"{path}: a submission is a folder of .py files, a .py or an .ipynb")


def parse_cells(data: bytes, name: str) -> tuple[str, ...]:
    """The code cells of a notebook's bytes, in order. Raises SubmissionFileError."""
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise SubmissionFileError(f"{name}: is not a notebook: it is not JSON") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise SubmissionFileError(f"{name}: is not a notebook of format 4: it has no list of cells")
    return tuple(_source(cell) for cell in cells if _is_code(cell))


def _is_code(cell: Any) -> bool:
    return isinstance(cell, dict) and cell.get("cell_type") == "code"


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def _folder(folder: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    size = 0
    pending = [folder]
    for parent in pending:  # no recursion: a stranger chose how deep the folders are
        for path in _entries(parent):
            mode = path.lstat().st_mode
            relative = path.relative_to(folder)
            if stat.S_ISDIR(mode):
                if path.name in _SKIPPED or path.name.startswith("."):
                    continue
                if len(relative.parts) > DEPTH_CAP or len(pending) > FILES_CAP:
                    raise SubmissionFileError(f"{folder}: has too many folders in it")
                pending.append(path)
            elif path.suffix == ".py" and stat.S_ISREG(mode):
                if len(files) >= FILES_CAP:
                    raise SubmissionFileError(f"{folder}: has more than {FILES_CAP} .py files")
                files[relative.as_posix()] = regular_bytes(path, FILE_CAP)
                size += len(files[relative.as_posix()])
                if size > FOLDER_CAP:
                    raise SubmissionFileError(f"{folder}: is larger than {FOLDER_CAP >> 20} MiB")
    return dict(sorted(files.items()))


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise SubmissionFileError(f"{folder}: cannot be read: {error.strerror}") from None


def regular_bytes(path: Path, cap: int) -> bytes:
    """A regular file's bytes; what changes into a link or a pipe under our hands is refused."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise SubmissionFileError(f"{path}: is not a regular file")
            data = file.read(cap + 1)
    except OSError as error:
        raise SubmissionFileError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > cap:
        raise SubmissionFileError(f"{path}: is larger than {cap >> 20} MiB")
    return data
