"""Which system calls a worker may make.

Source: https://docs.kernel.org/userspace-api/seccomp_filter.html.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2

# name, number on x86_64, number on aarch64 (asm/unistd_64.h and asm-generic/unistd.h).
# Calls in no list get ENOSYS, as on an older kernel: glibc then falls back (clone3 -> clone).
_ALLOWED = """
read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68,
preadv 295 69, pwritev 296 70, preadv2 327 286, pwritev2 328 287, sendfile 40 71,
copy_file_range 326 285, lseek 8 62, close 3 57, dup 32 23, dup2 33 -,
dup3 292 24, pipe 22 -, pipe2 293 59, eventfd2 290 19, fsync 74 82, fdatasync 75 83,
ftruncate 77 46,
stat 4 -, fstat 5 80, lstat 6 -, newfstatat 262 79, statx 332 291, statfs 137 43, fstatfs 138 44,
access 21 -, faccessat 269 48, faccessat2 439 439, readlink 89 -, readlinkat 267 78,
getdents 78 -, getdents64 217 61, getcwd 79 17, chdir 80 49, fchdir 81 50, umask 95 166,
creat 85 -, mkdir 83 -, mkdirat 258 34, rmdir 84 -, unlink 87 -, unlinkat 263 35,
rename 82 -, renameat 264 38, renameat2 316 276,
poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, epoll_create1 291 20, epoll_ctl 233 21,
epoll_wait 232 -, epoll_pwait 281 22,
recvfrom 45 207, shutdown 48 210, getsockname 51 204, getpeername 52 205, getsockopt 55 209,
mmap 9 222, munmap 11 215, mremap 25 216, mprotect 10 226, madvise 28 233, msync 26 227,
brk 12 214, get_mempolicy 239 236, membarrier 324 283, mseal 462 462,
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
sysinfo 99 179, getrusage 98 165, getrlimit 97 163, wait4 61 260, waitid 247 95,
sched_getaffinity 204 123, sched_getparam 143 121, sched_getscheduler 145 120, getpgid 121 155,
getsid 124 156, getpriority 140 141, clock_gettime 228 113, clock_getres 229 114,
clock_nanosleep 230 115
"""
# Calls that ordinary programs make get EPERM, which Python turns into a PermissionError.
_REFUSED = """
flock 73 32,
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
# Allowed only with some arguments: see Filter.compiled.
_CHECKED = """
open 2 -, openat 257 56, ioctl 16 29, fcntl 72 25, prctl 157 167, clone 56 220, kill 62 129,
tgkill 234 131, prlimit64 302 261, sched_setaffinity 203 122, sendto 44 206, close_range 436 436
"""
_FOR_CUDA = """
ioctl 16 29, memfd_create 319 279, flock 73 32, mlock 149 228, munlock 150 229, mlock2 325 284,
mbind 237 235, set_mempolicy 238 237, timerfd_create 283 85, timerfd_settime 286 86, eventfd 284 -,
bind 49 200, listen 50 201, fallocate 285 47
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


def _opens_by_name(index: int) -> _Code:
    """Allow these open flags: no O_TMPFILE, and O_TRUNC only with O_WRONLY or O_RDWR.

    A file without a name leaves no trace in its folder. If it truncates, Landlock then requires the
    right to write: before its third version, it does not notice truncation with O_RDONLY.
    """
    nameless = (_ANY_BIT, 4, 0, 0o20000000)
    truncates = (_ANY_BIT, 0, 4, 0o1000)
    writes = ((_AND, 0, 0, 3), (_EQUAL, 2, 0, 1), (_EQUAL, 1, 0, 2))
    return (_argument(index), nameless, truncates, *writes, _REFUSE, _ALLOW)


def _is_null(index: int) -> _Code:
    """Allow the call if the argument, a pointer, is null."""
    low, high = _argument(index), (_LOAD, 0, 0, 16 + 8 * index + 4)
    return (low, (_EQUAL, 0, 2, 0), high, (_EQUAL, 1, 0, 0), _REFUSE, _ALLOW)


_THREAD = 0x00010000  # CLONE_THREAD: a thread of this process, not a child
_FILES = 0x00000400  # CLONE_FILES: with the same open files; the limit is for each table of them
_NAMESPACES = 0x7E020000  # CLONE_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET
_CHECKS: dict[str, _Code] = {
    "open": _opens_by_name(1),
    "openat": _opens_by_name(2),
    # TCGETS, TCGETS2 (isatty), TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
    "ioctl": _one_of(1, 0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451),
    # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC; no locks, and not F_SETOWN, with
    # which the kernel would signal any process for us
    "fcntl": _one_of(1, 0, 1, 2, 3, 4, 1030),
    # PR_SET_NAME, PR_GET_NAME, PR_SVE_GET_VL, PR_SME_GET_VL, PR_SET_VMA (names memory)
    "prctl": _one_of(0, 15, 16, 51, 64, 0x53564D41),
    "clone": _masked(0, _THREAD | _FILES | _NAMESPACES, _THREAD | _FILES),
    "close_range": _one_of(2, 0, 4),  # CLOSE_RANGE_CLOEXEC, and not a table of its own
    "kill": _one_of(0, _OWN_PID),
    "tgkill": _one_of(0, _OWN_PID),  # abort() and raise()
    "prlimit64": _one_of(0, 0),
    "sched_setaffinity": _one_of(0, 0),
    "sendto": _is_null(4),  # send() on a connected socket
}
_CUDA_CHECKS: dict[str, _Code] = {
    "socket": _one_of(0, 1),  # AF_UNIX
    "setsockopt": _one_of(2, 16),  # SO_PASSCRED
    "connect": (_ABSENT,),  # as where that service does not run
}


class Filter:
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
    def compiled(cls, machine: str, *, gpu: bool) -> "Filter | None":
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
