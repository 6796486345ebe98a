"""The folder in which a run's workers have theirs, and what killed runs have left of such folders.

A run keeps the owner's file in its folder locked, and the system unlocks it when the last process
of the run is gone. So a folder whose file can be locked belongs to no run that lives.
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
except ImportError:  # Windows has none: nothing is swept there
    fcntl = None  # type: ignore[assignment]

_PREFIX = "grade-"
_FAREWELL = 1.0  # seconds: a worker that is about to end may still write something


class ScratchRoot:
    """A new folder of this run, which no other run sweeps while this one lives."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix=_PREFIX)
        self._owner = None if fcntl is None else _own(self.path)

    def remove(self) -> None:
        """Remove the folder; tell whoever started the run if something of it stays."""
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
    """Remove what this user's killed runs have left; tell whoever started this run what stays."""
    if fcntl is None:
        return
    folder = glob.escape(tempfile.gettempdir())
    for owner in glob.glob(os.path.join(folder, f"{_PREFIX}*", OWNER)):
        with suppress(OSError):  # a live run has locked it, or another one is sweeping it
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
    """Lock the owner's file of a new folder; it has that name once it is locked, and not before."""
    new = os.path.join(root, "new")
    descriptor = os.open(new, os.O_RDWR | os.O_CREAT, 0o600)
    with suppress(OSError):  # a network's file system may have no locks: then nobody sweeps it
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.rename(new, os.path.join(root, OWNER))
    return descriptor


def _tell(root: str, refusal: OSError) -> None:
    """One line on stderr, for no report: it is no student's fault."""
    # The name of what stays is a stranger's, so it is not shown.
    logging.getLogger("grader").warning(
        "grade: cannot remove %s: %s; delete this folder by hand", root, refusal.strerror
    )
