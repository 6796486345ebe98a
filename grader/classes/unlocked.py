"""Says what to do on a machine that cannot lock submissions in completely."""

from __future__ import annotations

import ctypes
import errno
import sys
from collections.abc import Sequence

_CREATE_RULESET = 444  # landlock_create_ruleset(2), on every processor
_VERSION = 1  # its flag that only asks for the version
_ELSEWHERE = (
    "Grade on a Linux machine, real or virtual, that locks everything (docs/instructors.md)"
)
_LANDLOCK = {
    errno.ENOSYS: "Landlock needs Linux 5.13, and in a container a seccomp profile that knows it "
    "(docs/containers.md)",
    errno.EPERM: "The seccomp profile of this container forbids Landlock: use one that allows it "
    "(docs/containers.md)",
    errno.EOPNOTSUPP: "Landlock is off: add landlock to lsm= on the kernel's command line",
}


def way_out(missing: Sequence[str]) -> str:
    """What the instructor can do about the missing layers, as a sentence without its full stop."""
    if sys.platform != "linux" or "landlock" not in missing:
        return _ELSEWHERE
    libc = ctypes.CDLL(None, use_errno=True)
    works = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION) >= 0
    return _LANDLOCK.get(0 if works else ctypes.get_errno(), _ELSEWHERE)
