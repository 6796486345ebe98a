"""The folder with the scratch folders of a run's workers; also removes those of killed runs.

A run keeps the owner file in its folder locked, and the system unlocks it when the last process of
the run ends. So if the file can be locked, no live run owns the folder.
"""

from __future__ import annotations

import glob
import logging
import os
import stat
import tempfile
import time
from contextlib import suppress

from grader.run.worker.scratch import OWNER, remove_tree

try:
    import fcntl
except ImportError:  # Windows has no fcntl: nothing is swept there
    fcntl = None  # type: ignore[assignment]

_PREFIX = "grade-"
_FAREWELL = 1.0  # seconds; a worker that is ending may still write


class ScratchRoot:
    """A new folder for this run; no other run sweeps it while this run lives."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix=_PREFIX)
        self._owner = None if fcntl is None else _own(self.path)

    def remove(self) -> None:
        """Remove the folder; if something of it stays, tell the user who started the run."""
        last = os.path.join(self.path, OWNER)
        end = time.monotonic() + _FAREWELL
        while refusal := remove_tree(self.path, last):
            if time.monotonic() > end:
                _tell(self.path, refusal)
                break
            time.sleep(0.02)
        if self._owner is not None:
            os.close(self._owner)


def sweep() -> None:
    """Remove what this user's killed runs have left; tell the user what stays."""
    if fcntl is None:
        return
    folder = glob.escape(tempfile.gettempdir())
    for owner in glob.glob(os.path.join(folder, f"{_PREFIX}*", OWNER)):
        with suppress(OSError):  # a live run holds the lock, or another run is sweeping it
            _sweep(os.path.dirname(owner), owner)


def _sweep(root: str, owner: str) -> None:
    state = os.lstat(root)
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid():
        return
    descriptor = os.open(owner, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        refusal = remove_tree(root, last=owner)
        if refusal is not None:
            _tell(root, refusal)
    finally:
        os.close(descriptor)


def _own(root: str) -> int:
    """Create and lock the owner file of a new folder; it gets its name only once it is locked."""
    new = os.path.join(root, "new")
    descriptor = os.open(new, os.O_RDWR | os.O_CREAT, 0o600)
    with suppress(OSError):  # a network file system may lack locks: no run sweeps there
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.rename(new, os.path.join(root, OWNER))
    return descriptor


def _tell(root: str, refusal: OSError) -> None:
    """Print one line on stderr; it is not in the report, because no student caused it."""
    # A stranger chose the name of what stays, so it is not shown.
    logging.getLogger("grader").warning(
        "grade: cannot remove %s: %s; delete this folder by hand", root, refusal.strerror
    )
