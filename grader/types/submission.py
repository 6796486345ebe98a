"""A submission as bytes: what the checker read and the worker will import."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Submission:
    """A folder of files by relative path, or one `script`, or one notebook's code `cells`."""

    name: str
    files: Mapping[str, bytes]
    script: str | None = None
    cells: tuple[str, ...] | None = None

    def digest(self, file_name: str) -> str:
        """What tells this answer from another one to the stage of that file."""
        if self.cells is not None:
            data = "\0".join(self.cells).encode("utf-8", "surrogatepass")
        else:
            data = self.files.get(self.script or file_name, b"")
        return hashlib.sha256(data).hexdigest()[:16]

    @property
    def is_folder(self) -> bool:
        """Whether each stage has a file of its own."""
        return self.script is None and self.cells is None
