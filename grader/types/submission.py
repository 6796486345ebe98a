"""A submission as bytes, which the checker reads and the worker imports."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

EXERCISES = "exercises"  # the folder of a workspace that is graded
IS_A_LINK = "is a link, which is not followed"


@dataclass(frozen=True)
class Submission:
    """A folder of files by relative path, or one `script`, or one notebook's code `cells`.

    `links` are files that were not read because they are links, and `near` what a learner may have
    saved in the wrong place. If `refused` gives a reason, nothing was read, and the report says so.
    """

    name: str
    files: Mapping[str, bytes]
    script: str | None = None
    cells: tuple[str, ...] | None = None
    links: frozenset[str] = frozenset()
    near: Mapping[str, bytes] = field(default_factory=dict)
    refused: str = ""

    def digest(self, file_name: str) -> str:
        """A digest of the answer to the stage with that file."""
        if self.cells is not None:
            data = repr(self.cells).encode()
        else:
            data = self.files.get(self.script or file_name, b"")
        return hashlib.sha256(data).hexdigest()

    @property
    def is_folder(self) -> bool:
        """Whether each stage has its own file."""
        return self.script is None and self.cells is None
