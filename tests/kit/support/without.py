"""Run a command where the system has no landlock, or no seccomp: `without.py LAYER COMMAND ...`.

As on an older kernel, or in a container whose runtime refuses these calls: a seccomp filter answers
them as such a system does.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys

from grader.run.worker import lock

COLUMN = lock._MACHINES[platform.machine()][0]
[PRCTL] = [number for name, number in lock._numbers(lock._CHECKED, COLUMN) if name == "prctl"]
LANDLOCK = 444, 447  # its three calls have these numbers on every processor
INVALID = (lock._RETURN, 0, 0, 0x00050000 | 22)
NUMBER = (lock._LOAD, 0, 0, lock._NUMBER)


def without_landlock(answer: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    return [
        NUMBER,
        (lock._AT_LEAST, 0, 2, LANDLOCK[0]),
        (lock._AT_LEAST, 1, 0, LANDLOCK[1]),
        answer,
        lock._ALLOW,
    ]


PROGRAMS = {
    "landlock": without_landlock(lock._UNKNOWN),
    "landlock, forbidden": without_landlock(lock._REFUSE),
    "landlock, off": without_landlock((lock._RETURN, 0, 0, 0x00050000 | errno.EOPNOTSUPP)),
    "seccomp": [
        NUMBER,
        (lock._EQUAL, 0, 3, PRCTL),
        lock._argument(0),
        (lock._EQUAL, 0, 1, lock._PR_SET_SECCOMP),
        INVALID,
        lock._ALLOW,
    ],
}

if __name__ == "__main__":
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    assert libc.prctl(lock._PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert lock._Filter(PROGRAMS[sys.argv[1]]).load(libc)
    os.execv(sys.argv[2], sys.argv[2:])
