"""Writes files without ever losing the old contents."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from grader.types.text import safe_line


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `path` in one step: a reader sees either the old file or the new. Raises OSError.

    If it is killed, the old file is unchanged; a `.new` file may remain, which the next call
    replaces.
    """
    write_pieces(path, [content])


def write_pieces(path: Path, pieces: Iterable[str | bytes]) -> None:
    """Write the pieces to `path` in one step, like `write_whole`. Raises OSError."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)  # someone may have put a link there
    try:
        with open(new, "xb") as file:
            for piece in pieces:
                file.write(piece.encode() if isinstance(piece, str) else piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException as error:  # Ctrl-C too
        with suppress(OSError):
            new.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(new):
            error.filename = str(path)
        raise


def read_table(path: Path) -> dict[str, Any]:
    """The data of a JSON file of the kit's own, empty if it is damaged or missing."""
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def name_in_text(path: Path) -> str:
    """A path as safe text on one line: bytes that are not UTF-8 become escapes."""
    return safe_line(os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace"))


def listed_names(folder: Path) -> list[str]:
    """The names of a folder's entries in order; none if its owner has closed it to us."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def free_name(path: Path) -> Path:
    """`path` with the first unused number at its end: `path`-1, `path`-2 ..."""
    number = 1
    while path.with_name(f"{path.name}-{number}").exists():
        number += 1
    return path.with_name(f"{path.name}-{number}")
