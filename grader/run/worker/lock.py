"""Locks a freshly forked worker on Linux, so that it can safely run unknown code.

A locked process can still use the descriptors that it was told to keep, its scratch folder, the
files of the Python environment, memory, threads, time and randomness. Four layers enforce that:

    Landlock      which files it may open, from Linux 5.13 on (linux/landlock.h)
    seccomp       which system calls it may make: a list of allowed ones (linux/seccomp.h)
    privileges    no capability, no new one, not traceable, ends with its parent (prctl(2))
    limits        address space, CPU time, file size, open files (setrlimit(2))

The code is our own because no package fits: landlockpy and seccompy (pure Python) take several
times as long in a forked child, which would open every path again and compile the filter that names
its own pid; pyseccomp needs a system library; sandlock needs Linux 6.12 and gives a running process
only Landlock. It can be imported on any system; outside Linux, a lock sets the limits that exist
and names what is missing.
"""

import ctypes
import os
import platform
import struct
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

from grader.run.worker.landlock import Rulesets
from grader.run.worker.policy import Policy
from grader.run.worker.seccomp import Filter

try:
    import resource
except ImportError:  # Windows has no resource module
    resource = None  # type: ignore[assignment]

_LINUX = sys.platform == "linux"
_MSEAL = 462  # the number of this system call on every processor
_PT_LOAD = 1
_HEADER = struct.Struct("=IIQQQQQQ")  # Elf64_Phdr: kind, flags, offset, address, ..., size, ...


class _Library(ctypes.Structure):
    """The beginning of struct dl_phdr_info (dl_iterate_phdr(3))."""

    _fields_ = [
        ("base", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_void_p),
        ("count", ctypes.c_uint16),
    ]


def seal_libraries() -> None:
    """Let nobody unmap or replace the libraries in this process and in those forked later.

    Code could otherwise take their room, which no limit and no measurement would see. Linux before
    6.10 cannot do that.
    """
    if not _LINUX or ctypes.sizeof(ctypes.c_void_p) != 8:
        return
    libc = ctypes.CDLL(None)
    page = os.sysconf("SC_PAGE_SIZE")

    def seal(library: Any, size: int, data: Any) -> int:
        found = library.contents
        table = ctypes.string_at(found.headers, found.count * _HEADER.size)
        for kind, _, _, address, _, _, length, _ in _HEADER.iter_unpack(table):
            if kind == _PT_LOAD:
                start = (found.base + address) // page * page
                room = -((start - found.base - address - length) // page) * page
                libc.syscall(_MSEAL, ctypes.c_ulong(start), ctypes.c_ulong(room), 0)
        return 0

    called = (ctypes.POINTER(_Library), ctypes.c_size_t, ctypes.c_void_p)
    with suppress(AttributeError, MemoryError):  # a hardened system may forbid callbacks
        libc.dl_iterate_phdr(ctypes.CFUNCTYPE(ctypes.c_int, *called)(seal), None)


class Lock:
    """A policy ready to apply in forked children, made once in the server.

    Holds a few descriptors for that.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._size = _address_space()
        self._server = os.getpid()
        self._files: Rulesets | None = None
        self._calls: Filter | None = None
        if _LINUX:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._libc.syscall.restype = ctypes.c_long
            self._libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
            seal_libraries()
            self._files = Rulesets.prepared(self._libc, policy)
            self._calls = Filter.compiled(platform.machine(), gpu=policy.gpu)

    def adopt(self) -> None:
        """Make this process, a copy of the server, the one whose end also ends the workers."""
        self._server = os.getpid()

    def apply(self, scratch: str, keep: Collection[int] = (0, 1, 2)) -> tuple[str, ...]:
        """Lock this process for good; return the names of what could not be applied.

        Call it in a child with a single thread. It closes every descriptor that is not in `keep`,
        because it needs its own descriptors until then. Names: landlock, seccomp, privileges, and
        of the limits: memory, processor time, file size, open files, core dumps.
        """
        missing: list[str] = []
        no_new_privileges = _LINUX and self._prctl(_PR_SET_NO_NEW_PRIVS, 1)
        if not (no_new_privileges and self._files and self._files.restrict(scratch)):
            missing.append("landlock")
        if hasattr(os, "fork"):
            _close_all_but(keep)
        missing += self._limit()
        if not (no_new_privileges and self._drop_privileges()):
            missing.append("privileges")
        if not (no_new_privileges and self._calls and self._calls.load(self._libc)):
            missing.append("seccomp")
        return tuple(missing)

    def _limit(self) -> Iterator[str]:
        """Set every limit and yield the names of those that do not hold."""
        policy = self._policy
        seconds = int(time.process_time()) + policy.cpu_seconds
        limits = [
            ("processor time", "RLIMIT_CPU", seconds, seconds + 1),
            ("file size", "RLIMIT_FSIZE", policy.file_bytes, policy.file_bytes),
            ("open files", "RLIMIT_NOFILE", policy.open_files, policy.open_files),
            ("core dumps", "RLIMIT_CORE", 0, 0),
        ]
        if policy.memory_bytes is not None:
            if self._size is None:
                yield "memory"
            else:
                memory = self._size + policy.memory_bytes
                limits.append(("memory", "RLIMIT_AS", memory, memory))
        if not _LINUX:  # on Linux it counts threads as well, and seccomp refuses children anyway
            limits.append(("processes", "RLIMIT_NPROC", 0, 0))
        for name, kind, soft, hard in limits:
            if not _set_limit(kind, soft, hard):
                yield name

    def _drop_privileges(self) -> bool:
        """Give up every capability, hide from ptrace and /proc, end with the server.

        With no_new_privs an execve cannot restore capabilities, so the bounding set may stay. The
        user stays the same too: another user could not read an interpreter in a private home
        folder.
        """
        # struct __user_cap_header_struct, and two of __user_cap_data_struct with no bit set
        done: bool = self._libc.capset(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24)) == 0
        if not self._policy.gpu:  # CUDA must read its own /proc/self
            done &= self._prctl(_PR_SET_DUMPABLE, 0)
        done &= self._prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        if self._server not in (os.getpid(), os.getppid()):
            os._exit(1)  # the parent ended before the signal was set
        return done

    def _prctl(self, option: int, argument: int) -> bool:
        return bool(self._libc.prctl(option, argument, 0, 0, 0) == 0)


_PR_SET_PDEATHSIG, _SIGKILL = 1, 9
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522


def _address_space() -> int | None:
    """The current size of this process's address space."""
    try:
        descriptor = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return None
    pages = int(os.read(descriptor, 100).split()[0])
    os.close(descriptor)
    return pages * os.sysconf("SC_PAGE_SIZE")


def _set_limit(name: str, soft: int, hard: int) -> bool:
    """Set a resource limit, at most the current hard limit; returns whether it is set."""
    try:
        kind = getattr(resource, name)
        try:
            resource.setrlimit(kind, (soft, hard))
        except ValueError:
            ceiling = resource.getrlimit(kind)[1]
            resource.setrlimit(kind, (min(soft, ceiling), min(hard, ceiling)))
    except (AttributeError, OSError, ValueError):
        return False
    return True


def _close_all_but(keep: Collection[int]) -> None:
    start = 0
    for descriptor in sorted(keep):
        if start < descriptor:  # closerange(0, 0) closes everything on some Pythons
            os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, 1 << 16)
