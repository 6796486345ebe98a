"""Writing files so that nothing which was there is ever lost."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `path` in one step: whoever reads it finds the old file or the new. OSError.

    Killed at any moment it leaves the old file as it was, and perhaps a `.new` beside it, which
    the next time writes over.
    """
    write_pieces(path, [content])


def write_pieces(path: Path, pieces: Iterable[str | bytes]) -> None:
    """Write the pieces to `path`, one after the other, in one step like `write_whole`. OSError."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)  # it may be a link that somebody has put there
    with open(new, "xb") as file:
        for piece in pieces:
            file.write(piece.encode() if isinstance(piece, str) else piece)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def name_in_text(path: Path) -> str:
    """A path as text that can be written down: bytes that are no UTF-8 become escapes."""
    return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")


def free_name(path: Path) -> Path:
    """`path` with the first number at its end that no file has yet: `path`-1, `path`-2 ..."""
    number = 1
    while path.with_name(f"{path.name}-{number}").exists():
        number += 1
    return path.with_name(f"{path.name}-{number}")
