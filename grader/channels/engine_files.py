"""The part of the kit in a student's copy: the core, diagnosis and the learning wing."""

from __future__ import annotations

from pathlib import Path

_ENGINE = Path(__file__).parents[1]
# Only authors and instructors need these.
_WITHHELD = ("authoring", "classes", "channels", "nbgrader.py")


def engine_files() -> dict[str, bytes]:
    """The bytes of each file by its path, grader/... Raises OSError."""
    return {
        f"grader/{place.as_posix()}": file.read_bytes()
        for file in sorted(_ENGINE.rglob("*"))
        for place in [file.relative_to(_ENGINE)]
        if file.is_file() and "__pycache__" not in place.parts and place.parts[0] not in _WITHHELD
    }
