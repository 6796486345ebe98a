"""A submission as bytes: what the checker read and the worker will import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Submission:
    """A folder of files by relative path, or one `script`, or one notebook's code `cells`."""

    name: str
    files: Mapping[str, bytes]
    script: str | None = None
    cells: tuple[str, ...] | None = None

    @property
    def is_folder(self) -> bool:
        """Whether each stage has a file of its own."""
        return self.script is None and self.cells is None
