"""A folder, a .py file or an .ipynb -> Submission. Nothing is imported, no link is followed."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from grader.read.files import name_in_text
from grader.types.errors import SubmissionFileError
from grader.types.submission import Submission

FILE_CAP = 1 << 20  # bytes of one file
NOTEBOOK_CAP = 32 << 20  # bytes of a notebook, whose pictures are in it
CELLS_CAP = 10_000  # of a notebook
CODE_CAP = 1 << 20  # characters of its code
PIECES_CAP = 2_000_000  # lists, tables and texts in it: each takes many times its bytes
FILES_CAP = 200  # files of one folder, and folders in it
FOLDER_CAP = 8 << 20  # bytes of all its files
ENTRIES_CAP = 20_000  # of one folder, of any kind
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
        script = name_in_text(Path(path.name))
        return Submission(str(path), {script: regular_bytes(path, FILE_CAP)}, script=script)
    if path.suffix == ".ipynb":
        return Submission(
            str(path), {}, cells=parse_cells(regular_bytes(path, NOTEBOOK_CAP), str(path))
        )
    raise SubmissionFileError(f"{path}: a submission is a folder of .py files, a .py or an .ipynb")


def parse_cells(data: bytes, name: str) -> tuple[str, ...]:
    """The code cells of a notebook's bytes, in order. Raises SubmissionFileError."""
    try:
        cells = notebook_cells(data)
    except SubmissionFileError as error:
        raise SubmissionFileError(f"{name}: {error}") from None
    sources = tuple(cell_source(cell) for cell in cells if _is_code(cell))
    if sum(map(len, sources)) > CODE_CAP:
        raise SubmissionFileError(f"{name}: has more than {CODE_CAP >> 20} MiB of code")
    return sources


def notebook_cells(data: bytes) -> list[Any]:
    """The cells of a notebook's bytes, of any kind; in UTF-16 too, as some editors save it.

    Raises SubmissionFileError, whose text goes on from the notebook's name.
    """
    if sum(map(data.count, (b"[", b"{", b'"'))) > PIECES_CAP:
        raise SubmissionFileError("is not a notebook that anybody can have written")
    try:
        notebook = json.loads(data.decode(json.detect_encoding(data), "replace"))
    except (ValueError, RecursionError):
        raise SubmissionFileError(
            "is not a notebook: it is not JSON, so Jupyter cannot open it either"
        ) from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise SubmissionFileError("is not a notebook of format 4: open it in Jupyter and save it")
    if len(cells) > CELLS_CAP:
        raise SubmissionFileError(f"has more than {CELLS_CAP} cells")
    return cells


def _is_code(cell: Any) -> bool:
    return isinstance(cell, dict) and cell.get("cell_type") == "code"


def cell_source(cell: Mapping[str, Any]) -> str:
    """The text of a cell, whose lines may stand in a list; nothing for what is no text."""
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
                name = name_in_text(relative)
                files[name] = regular_bytes(path, FILE_CAP)
                size += len(files[name])
                if size > FOLDER_CAP:
                    raise SubmissionFileError(f"{folder}: is larger than {FOLDER_CAP >> 20} MiB")
    return dict(sorted(files.items()))


def _entries(folder: Path) -> list[Path]:
    try:
        entries = list(islice(folder.iterdir(), ENTRIES_CAP + 1))
    except OSError as error:
        raise SubmissionFileError(f"{folder}: cannot be read: {error.strerror}") from None
    if len(entries) > ENTRIES_CAP:
        raise SubmissionFileError(f"{folder}: has more than {ENTRIES_CAP} files in it")
    return sorted(entries)


def regular_bytes(path: Path, cap: int) -> bytes:
    """A regular file's bytes; what changes into a link or a pipe under our hands is refused."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise SubmissionFileError(f"{path}: is not a regular file")
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(cap + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise SubmissionFileError(f"{path}: cannot be read: it is a link") from None
        raise SubmissionFileError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > cap:
        raise SubmissionFileError(f"{path}: is larger than {cap >> 20} MiB")
    return data
