"""Run a command where the system has no landlock, or no seccomp: `without.py LAYER COMMAND ...`.

As on an older kernel, or in a container whose runtime refuses these calls: a seccomp filter answers
them as such a system does.
"""

import ctypes
import errno
import os
import platform
import sys

from grader.run.worker import lock, seccomp

COLUMN = seccomp._MACHINES[platform.machine()][0]
[PRCTL] = [number for name, number in seccomp._numbers(seccomp._CHECKED, COLUMN) if name == "prctl"]
LANDLOCK = 444, 447  # its three calls have these numbers on every processor
INVALID = (seccomp._RETURN, 0, 0, 0x00050000 | 22)
NUMBER = (seccomp._LOAD, 0, 0, seccomp._NUMBER)


def without_landlock(answer: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    return [
        NUMBER,
        (seccomp._AT_LEAST, 0, 2, LANDLOCK[0]),
        (seccomp._AT_LEAST, 1, 0, LANDLOCK[1]),
        answer,
        seccomp._ALLOW,
    ]


PROGRAMS = {
    "landlock": without_landlock(seccomp._UNKNOWN),
    "landlock, forbidden": without_landlock(seccomp._REFUSE),
    "landlock, off": without_landlock((seccomp._RETURN, 0, 0, 0x00050000 | errno.EOPNOTSUPP)),
    "seccomp": [
        NUMBER,
        (seccomp._EQUAL, 0, 3, PRCTL),
        seccomp._argument(0),
        (seccomp._EQUAL, 0, 1, seccomp._PR_SET_SECCOMP),
        INVALID,
        seccomp._ALLOW,
    ],
}

if __name__ == "__main__":
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    assert libc.prctl(lock._PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert seccomp.Filter(PROGRAMS[sys.argv[1]]).load(libc)
    os.execv(sys.argv[2], sys.argv[2:])
