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
only Landlock. The module needs only the standard library and imports none of the kit, because it
reaches the worker as text. It can be imported on any system; outside Linux, a lock sets the limits
that exist and names what is missing.
"""

import ctypes
import errno
import fnmatch
import glob
import os
import platform
import struct
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

try:
    import resource
except ImportError:  # Windows has no resource module
    resource = None  # type: ignore[assignment]

_LINUX = sys.platform == "linux"
_MSEAL = 462  # the number of this system call on every processor


@dataclass(frozen=True)
class Policy:
    """What every worker of one server may do."""

    readable: tuple[str, ...]
    """Folders and files that a worker may read; see python_environment()."""
    hidden: tuple[str, ...]
    """Names, with * and ?, of entries of site-packages that it may not: the kit's own package."""
    scratch_root: str
    """The folder below which each worker's scratch folder lies; nothing else of it is open."""
    memory_bytes: int | None
    """How far the address space may grow beyond the server's when it prepares; None: no limit."""
    cpu_seconds: int
    """Processor time: SIGXCPU at the limit, SIGKILL a second later."""
    file_bytes: int
    """The size of one file."""
    open_files: int
    """Descriptor numbers stay below this."""
    gpu: bool = False
    """Open NVIDIA's devices too. CUDA reserves address space freely: no memory_bytes with it."""


def python_environment() -> tuple[str, ...]:
    """The folders and files that this interpreter may still need: its library and the loader's.

    Of sys.path it takes only the standard library and the site-packages folders, which excludes the
    folder of a project installed in place (pip install -e).
    """
    wanted = {os.path.dirname(os.__file__)}
    for entry in sys.path:
        name = os.path.basename(os.path.normpath(entry)) if entry else ""
        if name in (*_PACKAGES, "lib-dynload") or fnmatch.fnmatch(name, "python3*.zip"):
            wanted.add(entry)
    wanted.update(os.path.join(sys.base_prefix, name) for name in ("lib", "lib64"))
    wanted.update(_SYSTEM)
    found = sorted({os.path.realpath(path) for path in wanted if os.path.exists(path)})
    return tuple(path for path in found if not any(_below(path, root) for root in found))


_PACKAGES = ("site-packages", "dist-packages")
_SYSTEM = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store", "/etc/ld.so.cache"),
    *("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"),
    *("/etc/localtime", "/usr/share/zoneinfo", "/usr/share/locale"),
    *("/proc/cpuinfo", "/sys/devices/system/cpu"),  # torch chooses its kernels by them
)


def _seal_libraries(libc: ctypes.CDLL) -> None:
    """Let nobody unmap or replace the libraries in this process and in those forked later.

    Code could otherwise take their room, which no limit and no measurement would see. Linux before
    6.10 cannot do that.
    """
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            bounds, flags, *_, path = line.split(maxsplit=5)
            if flags.endswith("p") and path.startswith("/") and not path.startswith("/dev/"):
                start, end = (ctypes.c_ulong(int(each, 16)) for each in bounds.split("-"))
                libc.syscall(_MSEAL, start, ctypes.c_ulong(end.value - start.value), 0)


class Lock:
    """A policy ready to apply in forked children, made once in the server.

    Holds a few descriptors for that.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._size = _address_space()
        self._server = os.getpid()
        self._files: _Files | None = None
        self._calls: _Filter | None = None
        if _LINUX:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._libc.syscall.restype = ctypes.c_long
            self._libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
            _seal_libraries(self._libc)
            self._files = _Files.prepared(self._libc, policy)
            self._calls = _Filter.compiled(platform.machine(), gpu=policy.gpu)

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
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
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


def _below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/")


# --- Landlock: https://docs.kernel.org/userspace-api/landlock.html --------------------------------

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_LOG_SAME_EXEC_OFF = 1  # refusals are normal here: keep them out of the host's audit log

_WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(1, 6))
_MAKE_DIR, _MAKE_REG, _REFER, _TRUNCATE, _IOCTL_DEV = (1 << bit for bit in (7, 8, 13, 14, 15))
_READ = _READ_FILE | _READ_DIR  # not EXECUTE: execve would need it, mapping a library does not
_DEVICE = _READ | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
_SCRATCH = (  # no links, pipes or sockets: the checker reads it later
    _READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE
)
_OF_FILES = _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV  # a file's rule may hold only these

_NVIDIA_DEVICES = ("/dev/nvidia*", "/dev/dri", "/dev/dxg")
_NVIDIA_FILES = (
    *("/sys", "/usr/local/cuda*", "/usr/local/nvidia", "/usr/share/nvidia", "/usr/lib64-nvidia"),
    *("/proc/driver/nvidia", "/proc/devices", "/proc/modules", "/proc/meminfo", "/proc/sys/vm"),
    "/proc/sys/kernel/osrelease",
)


class _Files:
    """The Landlock layers of a policy.

    A worker is under two rulesets and may do only what both allow. The server makes the first one
    once, for all workers: it opens the environment entry by entry without the hidden ones, which
    may take hundreds of rules, and all workers' scratch folders. The child makes the second one,
    because a rule added to a shared ruleset would also hold for the next worker: it opens a few
    whole folders, and only its own scratch folder. If nothing is hidden, the second one is enough.
    """

    def __init__(self, libc: ctypes.CDLL, version: int) -> None:
        self._call = libc.syscall
        self._version = version
        # All rights on files that this kernel knows: it refuses those that no rule grants.
        self._handled = (1 << 13 + (version >= 2) + (version >= 3) + (version >= 5)) - 1
        self._rules: list[bytes] = []
        self._own: dict[str, int] = {}
        self._shared: int | None = None

    @classmethod
    def prepared(cls, libc: ctypes.CDLL, policy: Policy) -> "_Files | None":
        """The layers, or None if the kernel has no Landlock."""
        version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)
        if version < 1:
            return None
        self = cls(libc, version)
        rights = dict.fromkeys(policy.readable, _READ)
        rights["/dev/null"] = _DEVICE
        if policy.gpu:
            rights.update((path, _READ) for name in _NVIDIA_FILES for path in glob.glob(name))
            rights.update((path, _DEVICE) for name in _NVIDIA_DEVICES for path in glob.glob(name))
            self._own["/proc/self"] = _READ  # CUDA looks up its memory map
            self._own["/proc/self/task"] = _READ | _WRITE_FILE | _TRUNCATE  # and names its threads
        self._rules = list(self._rules_for(rights, self._handled))
        hidden = _hidden(rights, policy.hidden)
        if hidden:
            shown = {path: _READ_FILE for root in rights for path in _visible(root, hidden)}
            if policy.gpu:
                shown["/proc"] = _READ_FILE  # the child's own part of /proc has no path yet
            shown[policy.scratch_root] = _READ_FILE | _REFER
            # Without REFER in the ruleset, files could not move within scratch.
            handled = self._handled & (_READ_FILE | _REFER)
            self._shared = self._ruleset(handled, self._used_up(self._rules_for(shown, handled)))
        return self

    def restrict(self, scratch: str) -> bool:
        """Put this thread under the layers."""
        own = self._rules_for({scratch: _SCRATCH, **self._own}, self._handled)
        layers = [self._ruleset(self._handled, (*self._rules, *own))]
        if self._shared is not None:
            layers.append(self._shared)
        flags = _LOG_SAME_EXEC_OFF if self._version >= 7 else 0
        results = [self._call(_RESTRICT_SELF, layer, flags) for layer in layers]
        return not any(results)

    def _rules_for(self, rights: dict[str, int], handled: int) -> Iterator[bytes]:
        """The rules (struct landlock_path_beneath_attr, packed), each with an open descriptor."""
        for path, right in rights.items():
            try:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue  # gone, or not readable for us: no rule, so the worker cannot open it
            right &= handled if os.path.isdir(path) else handled & _OF_FILES
            yield struct.pack("=Qi", right, descriptor)

    def _used_up(self, rules: Iterable[bytes]) -> Iterator[bytes]:
        """The rules; each one's descriptor is closed after use, because there may be many."""
        for rule in rules:
            yield rule
            os.close(struct.unpack("=Qi", rule)[1])

    def _ruleset(self, handled: int, rules: Iterable[bytes]) -> int:
        """The descriptor of a new ruleset, -1 if there is none."""
        # struct landlock_ruleset_attr: files, TCP (bind, connect), scopes (sockets, signals).
        # Older kernels accept the longer struct if the fields that they do not know are zero.
        network, scopes = 3 * (self._version >= 4), 3 * (self._version >= 6)
        attributes = struct.pack("=QQQ", handled, network, scopes)
        ruleset: int = self._call(_CREATE_RULESET, attributes, ctypes.c_size_t(24), 0)
        for rule in rules:
            self._call(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
        return ruleset


def _hidden(roots: Iterable[str], names: Collection[str]) -> set[str]:
    """The paths with one of these names in any site-packages folder at or below the roots."""
    found: set[str] = set()
    for root in map(glob.escape, roots):
        folders = [root] if os.path.basename(root) in _PACKAGES else []
        for name in _PACKAGES:
            folders += [os.path.join(root, name), os.path.join(root, "python*", name)]
        for folder in folders:
            matches = [p for name in names for p in glob.glob(os.path.join(folder, name))]
            if matches:  # then also hide the files that name other projects' folders
                matches += [p for name in _POINTERS for p in glob.glob(os.path.join(folder, name))]
            found.update(matches)
    return found


_POINTERS = ("*.pth", "*.egg-link", "__editable__*", "__pycache__")


def _visible(path: str, hidden: Collection[str]) -> Iterator[str]:
    """The path itself or, if a hidden one is below it, its entries one by one."""
    if path in hidden:
        return
    if not any(_below(one, path) for one in hidden):
        yield path
        return
    try:
        entries = list(os.scandir(path))
    except PermissionError:
        return
    for entry in entries:
        if not entry.is_symlink():  # its target is opened at its own place, or not at all
            yield from _visible(entry.path, hidden)


# --- seccomp: https://docs.kernel.org/userspace-api/seccomp_filter.html ---------------------------

# name, number on x86_64, number on aarch64 (asm/unistd_64.h and asm-generic/unistd.h).
# Calls in no list get ENOSYS, as on an older kernel: glibc then falls back (clone3 -> clone).
_ALLOWED = """
read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68,
preadv 295 69, pwritev 296 70, preadv2 327 286, pwritev2 328 287, sendfile 40 71,
copy_file_range 326 285, lseek 8 62, close 3 57, close_range 436 436, dup 32 23, dup2 33 -,
dup3 292 24, pipe 22 -, pipe2 293 59, eventfd2 290 19, fsync 74 82, fdatasync 75 83,
ftruncate 77 46, fallocate 285 47,
stat 4 -, fstat 5 80, lstat 6 -, newfstatat 262 79, statx 332 291, statfs 137 43, fstatfs 138 44,
access 21 -, faccessat 269 48, faccessat2 439 439, readlink 89 -, readlinkat 267 78,
getdents 78 -, getdents64 217 61, getcwd 79 17, chdir 80 49, fchdir 81 50, umask 95 166,
creat 85 -, mkdir 83 -, mkdirat 258 34, rmdir 84 -, unlink 87 -, unlinkat 263 35,
rename 82 -, renameat 264 38, renameat2 316 276,
poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, epoll_create1 291 20, epoll_ctl 233 21,
epoll_wait 232 -, epoll_pwait 281 22,
recvfrom 45 207, shutdown 48 210, getsockname 51 204, getpeername 52 205, getsockopt 55 209,
mmap 9 222, munmap 11 215, mremap 25 216, mprotect 10 226, madvise 28 233, msync 26 227,
brk 12 214, get_mempolicy 239 236, membarrier 324 283,
futex 202 98, futex_waitv 449 449, set_robust_list 273 99,
set_tid_address 218 96, rseq 334 293, arch_prctl 158 -, exit 60 93, exit_group 231 94,
sched_yield 24 124,
sched_get_priority_max 146 125, sched_get_priority_min 147 126, getcpu 309 168,
rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigpending 127 136,
rt_sigtimedwait 128 137, rt_sigsuspend 130 133, sigaltstack 131 132, pause 34 -,
restart_syscall 219 128, alarm 37 -, getitimer 36 102, setitimer 38 103,
nanosleep 35 101,
gettimeofday 96 169, time 201 -, times 100 153, getrandom 318 278,
getpid 39 172, getppid 110 173, gettid 186 178, getpgrp 111 -,
getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177, getresuid 118 148,
getresgid 120 150, getgroups 115 158, capget 125 90, uname 63 160,
sysinfo 99 179, getrusage 98 165, getrlimit 97 163, wait4 61 260, waitid 247 95
"""
# Calls that ordinary programs make get EPERM, which Python turns into a PermissionError. With locks
# and the page cache of a file that all may read, workers at work side by side could signal.
_REFUSED = """
flock 73 32, fadvise64 221 223, mincore 27 232,
socket 41 198, socketpair 53 199, connect 42 203, bind 49 200, listen 50 201, accept 43 202,
accept4 288 242, sendmsg 46 211, recvmsg 47 212, sendmmsg 307 269, setsockopt 54 208,
fork 57 -, vfork 58 -, execve 59 221, execveat 322 281, ptrace 101 117, personality 135 92,
process_vm_readv 310 270, process_vm_writev 311 271, tkill 200 130, rt_sigqueueinfo 129 138,
rt_tgsigqueueinfo 297 240, pidfd_open 434 434, pidfd_send_signal 424 424, pidfd_getfd 438 438,
setpriority 141 140, sched_setscheduler 144 119, sched_setparam 142 118, sched_setattr 314 274,
setrlimit 160 164, setsid 112 157, setpgid 109 154, setuid 105 146, setgid 106 144,
setresuid 117 147, setresgid 119 149, setgroups 116 159, capset 126 91,
chmod 90 -, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, chown 92 -, fchown 93 55,
lchown 94 -, fchownat 260 54, utime 132 -, utimes 235 -, futimesat 261 -, utimensat 280 88,
setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, truncate 76 45, link 86 -, linkat 265 37,
symlink 88 -, symlinkat 266 36, mknod 133 -, mknodat 259 33, chroot 161 51, mount 165 40,
umount2 166 39, unshare 272 97, setns 308 268, memfd_create 319 279, inotify_init1 294 26,
shmget 29 194, shmat 30 196, semget 64 190, msgget 68 186, mq_open 240 180, keyctl 250 219,
add_key 248 217, bpf 321 280, perf_event_open 298 241, io_uring_setup 425 425, userfaultfd 323 282
"""
# Allowed only with some arguments: see _Filter.compiled.
_CHECKED = """
open 2 -, openat 257 56, ioctl 16 29, fcntl 72 25, prctl 157 167, clone 56 220, kill 62 129,
tgkill 234 131, prlimit64 302 261, sched_setaffinity 203 122, sendto 44 206,
sched_getaffinity 204 123, sched_getparam 143 121, sched_getscheduler 145 120, getpgid 121 155,
getsid 124 156, getpriority 140 141, clock_gettime 228 113, clock_getres 229 114,
clock_nanosleep 230 115
"""
_FOR_CUDA = """
ioctl 16 29, memfd_create 319 279, flock 73 32, mlock 149 228, munlock 150 229, mlock2 325 284,
mbind 237 235, set_mempolicy 238 237, timerfd_create 283 85, timerfd_settime 286 86, eventfd 284 -,
bind 49 200, listen 50 201
"""
# CUDA looks for a service of its own, and listens at a local socket for processes that share
# memory with it. It does not start without these. A worker can still neither connect nor accept.
_CHECKED_FOR_CUDA = "socket 41 198, setsockopt 54 208, connect 42 203"
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column, AUDIT_ARCH_*

# struct sock_filter: code, how far to jump if true and if false, operand
_Instruction = tuple[int, int, int, int]
_Code = tuple[_Instruction, ...]
_LOAD, _AND, _RETURN, _JUMP = 0x20, 0x54, 0x06, 0x05
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_ALLOW: _Instruction = (_RETURN, 0, 0, 0x7FFF0000)
_REFUSE: _Instruction = (_RETURN, 0, 0, 0x00050000 | errno.EPERM)
_ABSENT: _Instruction = (_RETURN, 0, 0, 0x00050000 | errno.ENOENT)
_UNKNOWN: _Instruction = (_RETURN, 0, 0, 0x00050000 | 38)  # ENOSYS; Windows has another number
_KILL: _Instruction = (_RETURN, 0, 0, 0x80000000)
_OWN_PID = -1  # an operand filled in by the child


def _argument(index: int) -> _Instruction:
    """Load the low half of an argument; the kernel reads the checked arguments as 32 bits."""
    return (_LOAD, 0, 0, 16 + 8 * index)


def _one_of(index: int, *values: int) -> _Code:
    """Allow the call if the argument is one of the values."""
    tests = [(_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return (_argument(index), *tests, _REFUSE, _ALLOW)


def _masked(index: int, mask: int, value: int) -> _Code:
    """Allow the call if the bits of `mask` in the argument are those of `value`."""
    return (_argument(index), (_AND, 0, 0, mask), (_EQUAL, 1, 0, value), _REFUSE, _ALLOW)


def _without(index: int, bits: int) -> _Code:
    """Allow the call if the argument has none of the bits."""
    return (_argument(index), (_ANY_BIT, 0, 1, bits), _REFUSE, _ALLOW)


def _opens_to_write_if_truncating(index: int) -> _Code:
    """Allow these open flags: O_TRUNC only with O_WRONLY or O_RDWR.

    Landlock then requires the right to write. Before its third version, it does not notice
    truncation with O_RDONLY.
    """
    truncates = (_ANY_BIT, 0, 4, 0o1000)
    writes = ((_AND, 0, 0, 3), (_EQUAL, 2, 0, 1), (_EQUAL, 1, 0, 2))
    return (_argument(index), truncates, *writes, _REFUSE, _ALLOW)


def _is_null(index: int) -> _Code:
    """Allow the call if the argument, a pointer, is null."""
    low, high = _argument(index), (_LOAD, 0, 0, 16 + 8 * index + 4)
    return (low, (_EQUAL, 0, 2, 0), high, (_EQUAL, 1, 0, 0), _REFUSE, _ALLOW)


_THREAD = 0x00010000  # CLONE_THREAD: a thread of this process, not a child
_NAMESPACES = 0x7E020000  # CLONE_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET
_CHECKS: dict[str, _Code] = {
    "open": _opens_to_write_if_truncating(1),
    "openat": _opens_to_write_if_truncating(2),
    # TCGETS, TCGETS2 (isatty), TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
    "ioctl": _one_of(1, 0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451),
    # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC; no locks, and not F_SETOWN, with
    # which the kernel would signal any process for us
    "fcntl": _one_of(1, 0, 1, 2, 3, 4, 1030),
    # PR_SET_NAME, PR_GET_NAME, PR_SVE_GET_VL, PR_SME_GET_VL, PR_SET_VMA (names memory)
    "prctl": _one_of(0, 15, 16, 51, 64, 0x53564D41),
    "clone": _masked(0, _THREAD | _NAMESPACES, _THREAD),
    "kill": _one_of(0, _OWN_PID),
    "tgkill": _one_of(0, _OWN_PID),  # abort() and raise()
    "prlimit64": _one_of(0, 0),
    "sched_setaffinity": _one_of(0, 0),
    # Of another process these would tell whether it is there, and how many threads it has.
    **dict.fromkeys(
        ("sched_getaffinity", "sched_getparam", "sched_getscheduler", "getpgid", "getsid"),
        _one_of(0, 0, _OWN_PID),
    ),
    "getpriority": _one_of(1, 0, _OWN_PID),
    # So would a clock with a negative number: that is another process's time.
    **dict.fromkeys(("clock_gettime", "clock_getres", "clock_nanosleep"), _without(0, 1 << 31)),
    "sendto": _is_null(4),  # send() on a connected socket
}
_CUDA_CHECKS: dict[str, _Code] = {
    "socket": _one_of(0, 1),  # AF_UNIX
    "setsockopt": _one_of(2, 16),  # SO_PASSCRED
    "connect": (_ABSENT,),  # as where that service does not run
}


class _Filter:
    """A seccomp program, and where in it the child writes its own pid."""

    def __init__(self, program: list[_Instruction]) -> None:
        self._places = [8 * at + 4 for at, one in enumerate(program) if one[3] == _OWN_PID]
        code = b"".join(
            struct.pack("=HBBI", code, true, false, operand & 0xFFFFFFFF)
            for code, true, false, operand in program
        )
        self.code = ctypes.create_string_buffer(code, len(code))
        header = struct.pack("@HP", len(program), ctypes.addressof(self.code))  # struct sock_fprog
        self._header = ctypes.create_string_buffer(header, len(header))

    @classmethod
    def compiled(cls, machine: str, *, gpu: bool) -> "_Filter | None":
        """The program for a machine, or None if its call numbers are not known here."""
        if machine not in _MACHINES:
            return None
        column, architecture = _MACHINES[machine]
        actions: dict[int, _Code] = {}
        actions.update((number, (_REFUSE,)) for _, number in _numbers(_REFUSED, column))
        actions.update((number, (_ALLOW,)) for _, number in _numbers(_ALLOWED, column))
        actions.update((number, _CHECKS[name]) for name, number in _numbers(_CHECKED, column))
        if gpu:
            actions.update((number, (_ALLOW,)) for _, number in _numbers(_FOR_CUDA, column))
            checked = _numbers(_CHECKED_FOR_CUDA, column)
            actions.update((number, _CUDA_CHECKS[name]) for name, number in checked)
        ranges: list[tuple[int, _Code]] = [(0, (_UNKNOWN,))]
        for number in sorted({*actions, *(number + 1 for number in actions)}):
            action = actions.get(number, (_UNKNOWN,))
            if action != ranges[-1][1]:
                ranges.append((number, action))
        # Another architecture's calls (int 0x80) have other numbers: no way to judge them. The x32
        # ABI's have bit 30 set, so they are unknown numbers.
        start = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), _KILL]
        return cls([*start, (_LOAD, 0, 0, _NUMBER), *_search(ranges)])

    def load(self, libc: ctypes.CDLL) -> bool:
        """Put this thread under the program."""
        for place in self._places:
            struct.pack_into("=I", self.code, place, os.getpid())
        address = ctypes.addressof(self._header)
        return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, address, 0, 0) == 0)


def _numbers(table: str, column: int) -> Iterator[tuple[str, int]]:
    for line in table.split(","):
        name, *numbers = line.split()
        if numbers[column] != "-":
            yield name, int(numbers[column])


def _search(ranges: list[tuple[int, _Code]]) -> list[_Instruction]:
    """A binary search for the call's number: the kernel runs and checks few instructions."""
    if len(ranges) == 1:
        return list(ranges[0][1])
    middle = len(ranges) // 2
    below, above = _search(ranges[:middle]), _search(ranges[middle:])
    if len(below) < 256:  # the farthest that a conditional jump reaches
        return [(_AT_LEAST, len(below), 0, ranges[middle][0]), *below, *above]
    far = (_JUMP, 0, 0, len(below))
    return [(_AT_LEAST, 0, 1, ranges[middle][0]), far, *below, *above]
