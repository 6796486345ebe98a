"""The lock holds: each thing a worker must not do is tried in a forked child, with and without it.

A small server like the real one (isolated interpreter, the lock sent as text) forks a child for
every line of code below. What the lock refuses must work without it, or the test proves nothing.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.run.worker import lock, policy

SERVER = r"""
import ctypes, errno, fcntl, importlib, json, mmap, os, resource, shutil, signal, socket, struct
import sys, tempfile, threading, time, traceback, types

setup = json.loads(sys.stdin.readline())
for name in ("grader", "grader.run", "grader.run.worker"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
for name, source in setup["sources"].items():
    module = sys.modules[f"grader.run.worker.{name}"] = types.ModuleType(name)
    exec(source, vars(module))
from grader.run.worker import landlock, lock, policy
sys.path += setup["path"]
for name in setup["preload"]:
    importlib.import_module(name)
if "torch" in sys.modules:
    sys.modules["torch"].set_num_threads(1)
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

def checked(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def call(number, *arguments):
    return checked(libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in arguments)))

def child(request, out):
    names = dict(globals(), root=setup["root"], scratch=request["scratch"], server=os.getppid())
    names["kept"], names["peer"] = socket.socketpair()
    os.chdir(request["scratch"])
    try:
        exec(request["before"], names)
        missing = None
        if request["lock"]:
            keep = (0, 1, 2, out, names["kept"].fileno(), names["peer"].fileno())
            missing = names["ready"].apply(request["scratch"], keep)
        names["missing"] = missing
        exec(request["code"], names)
        answer = {"value": names.get("value")}
    except BaseException as error:
        answer = {"error": type(error).__name__, "errno": getattr(error, "errno", None),
                  "text": "".join(traceback.format_exception(error))}
    os.write(out, json.dumps(answer).encode())

environment = policy.python_environment() + tuple(setup["readable"])
ready = lock.Lock(policy.Policy(environment, tuple(setup["hidden"]), setup["root"] + "/scratch",
                                **setup["limits"]))
print("ready", flush=True)
for line in sys.stdin:
    inner, outer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(inner)
            child(json.loads(line), outer)
        finally:
            os._exit(0)
    os.close(outer)
    with open(inner, "rb") as file:
        text = file.read()
    status = os.waitpid(pid, 0)[1]
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    print(json.dumps({**json.loads(text or "{}"), "killed": killed}), flush=True)
"""
LIMITS = {"memory_bytes": 512 << 20, "cpu_seconds": 5, "file_bytes": 1 << 20, "open_files": 64}
REFUSALS = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EXDEV}
X86 = platform.machine() == "x86_64"

Ask = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="the lock is for Linux on x86_64 and aarch64",
)


class Server:
    """The forking server and the folder that its children are tried in."""

    def __init__(self, root: Path, *, preload: tuple[str, ...] = (), **policy: int | None) -> None:
        self.root = root
        for name in ("scratch/own", "scratch/sibling", "open/site-packages/grader/deep"):
            (root / name).mkdir(parents=True)
        for name in (
            *("secret.txt", "scratch/sibling/answer.py", "open/site-packages/other.py"),
            *("open/site-packages/grader/checks.py", "open/site-packages/grader/deep/more.py"),
            *("open/site-packages/project.pth", "open/shared.txt"),
        ):
            (root / name).write_text("value = 1\n")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"SECRET": "course"},
        )
        self._send(
            {
                "sources": {
                    name: Path(lock.__file__).with_name(f"{name}.py").read_text()
                    for name in ("policy", "landlock", "seccomp", "lock")
                },
                "root": str(root),
                "path": [],
                "readable": [str(root / "open")],
                "hidden": ["grader", "grader-*"],
                "preload": preload,
                "limits": {**LIMITS, **policy},
            }
        )
        assert self._read() == "ready\n"

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _read(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()

    def ask(self, code: str, *, locked: bool = True, before: str = "") -> dict[str, Any]:
        """Run code in a new child; its `value`, its exception or the signal that killed it."""
        scratch = str(self.root / "scratch" / "own")
        self._send({"code": code, "before": before, "lock": locked, "scratch": scratch})
        answer: dict[str, Any] = json.loads(self._read())
        return answer

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *how: object) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without torch."""
    with Server(tmp_path_factory.mktemp("lock")) as running:
        missing = running.ask("value = missing")["value"]
        if missing:
            pytest.skip(f"this kernel lacks {', '.join(missing)}")
        yield running


@pytest.fixture
def ask(server: Server) -> Ask:
    """Run code in a locked child, or with locked=False in a free one."""
    return server.ask


# Refused under the lock, and done without it.
REFUSED = {
    # files
    "read /etc/passwd": "open('/etc/passwd').read()",
    "read a file beside": "open(root + '/secret.txt').read()",
    "read it by the way back from scratch": "open('../../secret.txt').read()",
    "read it through a descriptor of its folder": (
        "folder = os.open(root, os.O_PATH); os.open('secret.txt', os.O_RDONLY, dir_fd=folder)"
    ),
    "read it through /proc/self/root": "open('/proc/self/root' + root + '/secret.txt')",
    "read a sibling's scratch": "open('../sibling/answer.py').read()",
    "list a sibling's scratch": "os.listdir('../sibling')",
    "list the folder above": "os.listdir(root)",
    "read a hidden package": "open(root + '/open/site-packages/grader/checks.py').read()",
    "read deep in it": "open(root + '/open/site-packages/grader/deep/more.py').read()",
    "read a .pth file": "open(root + '/open/site-packages/project.pth').read()",
    "read the server's environment": (
        "assert b'course' in open(f'/proc/{server}/environ', 'rb').read()"
    ),
    "read its own environment": "open('/proc/self/environ', 'rb').read()",
    "list the server's descriptors": "os.listdir(f'/proc/{server}/fd')",
    "list processes": "os.listdir('/proc')",
    "write beside": "open(root + '/new.txt', 'w'); os.unlink(root + '/new.txt')",
    "write where it may read": "open(root + '/open/shared.txt', 'a')",
    "lock a file that others read": "fcntl.flock(open(root + '/open/shared.txt'), fcntl.LOCK_EX)",
    "lock a record of it": "fcntl.lockf(open(root + '/open/shared.txt'), fcntl.LOCK_SH)",
    "open more files in a table of its own": "call(436, 900, 901, 2)",
    "take room without writing": (
        "os.posix_fallocate(os.open('a', os.O_CREAT | os.O_RDWR), 0, 9); os.unlink('a')"
    ),
    "truncate by opening to read": ("os.open(root + '/open/shared.txt', os.O_RDONLY | os.O_TRUNC)"),
    "truncate by opening for no access": "os.open(root + '/open/shared.txt', 3 | os.O_TRUNC)",
    "truncate": "os.truncate(root + '/open/shared.txt', 5)",
    "mkdir outside": "os.mkdir(root + '/folder'); os.rmdir(root + '/folder')",
    "rename out": "open('a', 'w').close(); os.rename('a', root + '/a'); os.unlink(root + '/a')",
    "rename in": "os.rename(root + '/secret.txt', 's'); os.rename('s', root + '/secret.txt')",
    "unlink outside": "open(root + '/u', 'w').close(); os.unlink(root + '/u')",
    "symbolic link": "os.symlink('/etc/passwd', 'link'); os.unlink('link')",
    "hard link in": "os.link(root + '/open/shared.txt', 'hard'); os.unlink('hard')",
    "named pipe": "os.mkfifo('pipe'); os.unlink('pipe')",
    "chmod": "os.chmod(root + '/secret.txt', 0o644)",
    "chmod by descriptor": "os.fchmod(os.open('.', os.O_RDONLY), 0o755)",
    "chown": "os.chown(root + '/secret.txt', -1, -1)",
    "utime": "os.utime(root + '/secret.txt')",
    "watch a folder": "checked(libc.inotify_init1(0))",
    # network
    "TCP": "socket.socket()",
    "UDP": "socket.socket(type=socket.SOCK_DGRAM)",
    "unix socket": "socket.socket(socket.AF_UNIX)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "socketpair": "socket.socketpair()",
    "pass a descriptor": "socket.send_fds(kept, [b'x'], [0])",
    "send to an address": (
        "try: kept.sendto(b'x', '/tmp/nobody')\n"
        "except OSError as error:\n"
        "    if error.errno != errno.EISCONN: raise"
    ),
    # processes
    "fork": "os.fork() or os._exit(0)",
    "spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "subprocess": "import subprocess; subprocess.run(['/bin/true'], check=True)",
    "exec": "os.execv('/bin/true', ['true'])",
    "exec from memory": (
        "fd = os.memfd_create('x'); os.write(fd, open('/bin/true', 'rb').read());"
        "os.execve(fd, ['true'], {})"
    ),
    "signal 0 to the server": "os.kill(server, 0)",
    "signal a thread of the server": "checked(libc.tgkill(server, server, 0))",
    "signal its group": "os.kill(0, 0)",
    "signal everyone": "os.kill(-1, 0)",
    "own the signals of a descriptor": "fcntl.fcntl(kept, fcntl.F_SETOWN, server)",
    "pidfd_open": "os.pidfd_open(server)",
    "leave its session": "os.setsid()",
    "ptrace": "checked(libc.ptrace(0, 0, 0, 0))",
    "process_vm_readv": (
        "buffer = ctypes.create_string_buffer(8);"
        "part = struct.pack('PP', ctypes.addressof(buffer), 8);"
        "checked(libc.process_vm_readv(os.getpid(), part, 1, part, 1, 0))"
    ),
    "the server's limits": "resource.prlimit(server, resource.RLIMIT_CORE)",
    "the server's priority": "os.setpriority(os.PRIO_PROCESS, server, os.getpriority(0, server))",
    "the server's processors": "os.sched_setaffinity(server, os.sched_getaffinity(server))",
    "personality": "checked(libc.personality(0xffffffff))",
    # what outlives a run, and the kernel's wide doors
    "shared memory": "checked(libc.shmctl(checked(libc.shmget(0, 4096, 0o600)), 0, None))",
    "message queue (System V)": "checked(libc.msgctl(checked(libc.msgget(0, 0o600)), 0, None))",
    "semaphore": "checked(libc.semctl(checked(libc.semget(0, 1, 0o600)), 0, 0))",
    "message queue (POSIX)": (
        "checked(libc.mq_open(b'/lock_test', os.O_CREAT | os.O_RDWR, 0o600, None));"
        "checked(libc.mq_unlink(b'/lock_test'))"
    ),
    "memfd": "os.memfd_create('x')",
}
# Refused for sure; without the lock harmful, or for root only, or not in every kernel.
REFUSED_ONLY = {
    "open the server's memory": "open(f'/proc/{server}/mem', 'rb')",
    "setxattr": "os.setxattr('.', 'user.a', b'b')",
    "terminal input": "fcntl.ioctl(0, 0x5412, b'x')",
    "namespace": "checked(libc.unshare(0))",
    "mount": "checked(libc.mount(b'none', b'.', b'tmpfs', 0, None))",
    "user namespace": "checked(libc.unshare(0x10000000))",
    "chroot": "os.chroot('.')",
    "setuid": "os.setuid(65534)",
    "io_uring": "call(425, 1, ctypes.addressof(ctypes.create_string_buffer(120)))",
    "clone3": "call(435, ctypes.addressof(ctypes.create_string_buffer(64)), 64)",
    "openat2": "call(437, -100, 0, 0, 24)",
    "bpf": f"call({321 if X86 else 280}, 0, 0, 0)",
    "perf_event_open": f"call({298 if X86 else 241}, 0, 0, -1, -1, 0)",
    "userfaultfd": f"call({323 if X86 else 282}, 1)",
    "keyctl": f"call({250 if X86 else 219}, 0, -3, 0)",
    "open by handle": f"call({304 if X86 else 265}, -100, 0, 0)",
    "tkill the server": f"call({200 if X86 else 130}, server, 0)",
    "a number of the future": "call(900)",
    "a file that never had a name": "os.open('.', os.O_TMPFILE | os.O_RDWR)",
    "a thread with a table of open files of its own": f"call({56 if X86 else 220}, 0x10900, 0)",
}
if X86:
    REFUSED["fork by its number"] = "call(57) or libc._exit(0)"
    REFUSED_ONLY["vfork by its number"] = "call(58)"
    REFUSED_ONLY["x32 getpid"] = "call(0x40000000 | 39)"
    REFUSED_ONLY["x32 open"] = "call(0x40000000 | 2, 0, 0)"
    REFUSED_ONLY["x32 execve"] = "call(0x40000000 | 520, 0, 0, 0)"


def refused(answer: dict[str, Any]) -> bool:
    """Whether the kernel said no, rather than that something is wrong with the question."""
    return answer.get("errno") in REFUSALS and not answer["killed"]


@pytest.mark.parametrize("attempt", REFUSED)
def test_refused(ask: Ask, attempt: str) -> None:
    """Each attempt fails in a locked child and succeeds in a free one."""
    answer = ask(REFUSED[attempt])
    assert refused(answer), answer
    free = ask(REFUSED[attempt], locked=False)
    assert "error" not in free, free["text"]
    assert not free["killed"]


@pytest.mark.parametrize("attempt", REFUSED_ONLY)
def test_refused_for_sure(ask: Ask, attempt: str) -> None:
    answer = ask(REFUSED_ONLY[attempt])
    assert refused(answer), answer


@pytest.mark.skipif(not X86, reason="int 0x80 is x86's")
def test_another_architecture_is_killed(ask: Ask) -> None:
    """The 32-bit entry has other numbers: 20 is getpid there and writev here."""
    code = (
        "page = mmap.mmap(-1, 4096, prot=7); page.write(bytes.fromhex('b814000000cd80c3'));"
        "address = ctypes.addressof(ctypes.c_char.from_buffer(page));"
        "value = ctypes.CFUNCTYPE(ctypes.c_int)(address)() > 0"
    )
    assert ask(code)["killed"] == signal.SIGSYS
    if not ask(code, locked=False).get("value"):
        pytest.skip("this kernel has no 32-bit system calls")


# Left to the worker.
ALLOWED = {
    "its socket": "kept.sendall(b'hello'); value = peer.recv(5) == b'hello'",
    "its socket, with a time limit": "kept.settimeout(5); value = kept.send(b'a') == 1",
    "wait for its socket": (
        "import selectors; s = selectors.DefaultSelector(); s.register(kept, 1);"
        "peer.send(b'x'); value = len(s.select(1)) == 1"
    ),
    "files in scratch": (
        "open('a', 'w').write('text'); os.rename('a', 'b'); os.mkdir('c'); os.rename('b', 'c/b');"
        "value = open('c/b').read() == 'text'; os.truncate(os.open('c/b', os.O_RDWR), 1);"
        "value &= os.listdir('.') == ['c']; shutil.rmtree('c')"
    ),
    "temporary files": (
        "tempfile.tempdir = scratch\n"
        "with tempfile.NamedTemporaryFile() as one, tempfile.TemporaryDirectory() as two:\n"
        "    one.write(b'x'); open(two + '/a', 'w').close()\n"
        "value = os.listdir('.') == []"
    ),
    "what is open to read": "open(root + '/open/shared.txt').read(); value = True",
    "list packages": "value = 'other.py' in os.listdir(root + '/open/site-packages')",
    "import from packages": (
        "sys.path.insert(0, root + '/open/site-packages'); import other; value = other.value == 1"
    ),
    "import from the standard library": (
        "assert not {'wave', 'sqlite3', 'decimal'} & set(sys.modules);"
        "import wave, sqlite3, decimal, dataclasses; value = True"
    ),
    "a traceback with its lines": (
        "import tokenize\n"
        "try: tokenize.open(3.5)\n"
        "except Exception: value = 'open(filename' in traceback.format_exc()"
    ),
    "threads": (
        "out = []; t = [threading.Thread(target=out.append, args=(i,)) for i in range(8)];"
        "[x.start() for x in t]; [x.join() for x in t]; value = len(out) == 8"
    ),
    "time": "a = time.monotonic(); time.sleep(0.01); value = time.monotonic() - a >= 0.01",
    "its own processor time": (
        "value = time.process_time() > 0 < time.thread_time()"
        " and time.clock_getres(time.CLOCK_PROCESS_CPUTIME_ID) > 0"
    ),
    "the local time": "value = time.localtime().tm_year > 2000; time.tzset()",
    "a timer of its own": (
        "signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(0, 0.01);"
        "signal.pause(); value = True"
    ),
    "randomness": "import random; random.seed(); random.random(); value = len(os.urandom(9)) == 9",
    "the null device": "print('x', file=open(os.devnull, 'w')); value = True",
    "signal itself": (
        "signal.signal(signal.SIGUSR1, lambda *_: None); os.kill(os.getpid(), signal.SIGUSR1);"
        "signal.raise_signal(signal.SIGUSR1); value = True"
    ),
    "its own limits": "value = resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)",
    "the number of processors": "value = os.cpu_count() >= 1 and len(os.sched_getaffinity(0)) >= 1",
    "shared pages": "value = len(mmap.mmap(-1, 4096)) == 4096",
}


@pytest.mark.parametrize("action", ALLOWED)
def test_allowed(ask: Ask, action: str) -> None:
    answer = ask(ALLOWED[action])
    assert answer.get("value") is True, answer.get("text", answer)


def test_other_descriptors_are_closed(ask: Ask) -> None:
    """Neither the server's descriptors nor the lock's own stay; those to keep do."""
    code = (
        "def is_open(n):\n"
        "    try: os.fstat(n)\n"
        "    except OSError: return False\n"
        "    return True\n"
        "value = sum(map(is_open, range(4096)))"
    )
    assert ask(code)["value"] == 6
    assert ask(code, locked=False)["value"] > 6


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
def test_an_environment_of_many_packages_takes_few_descriptors(tmp_path: Path) -> None:
    """A server with a small limit on them must not be left without rules."""
    packages = tmp_path / "site-packages"
    packages.mkdir()
    for name in ("grader", *(f"package_{number}" for number in range(300))):
        (packages / name).mkdir()
    before = len(os.listdir("/proc/self/fd"))
    limits = {**LIMITS, "memory_bytes": None}
    rules = policy.Policy((str(packages),), ("grader",), str(tmp_path), **limits)
    prepared = lock.Lock(rules)
    assert len(os.listdir("/proc/self/fd")) - before < 10
    assert prepared is not None


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("bytearray(300 << 20); bytearray(600 << 20)", ("error", "MemoryError")),
        ("open('big', 'wb').write(bytes(2 << 20)); os.unlink('big')", ("errno", errno.EFBIG)),
        ("files = [open('/dev/null') for _ in range(100)]", ("errno", errno.EMFILE)),
    ],
)
def test_memory_the_size_of_a_file_and_open_files_are_limited(
    ask: Ask, code: str, end: tuple[str, object]
) -> None:
    assert end in ask(code).items()
    assert "error" not in ask(code, locked=False)
    assert ask("value = len(bytearray(300 << 20))")["value"] == 300 << 20


def test_a_worker_may_end_itself(ask: Ask) -> None:
    assert ask("os.abort()")["killed"] == signal.SIGABRT


def test_processor_time_is_limited(tmp_path: Path) -> None:
    with Server(tmp_path, cpu_seconds=1) as running:
        assert running.ask("while True: pass")["killed"] == signal.SIGXCPU
        catch = "signal.signal(signal.SIGXCPU, lambda *_: None)\nwhile True: pass"
        assert running.ask(catch)["killed"] == signal.SIGKILL


def test_no_memory_limit(tmp_path: Path) -> None:
    with Server(tmp_path, memory_bytes=None) as running:
        assert running.ask("bytearray(600 << 20); value = missing")["value"] == []


# What libcuda does when it starts, as strace shows it.
AS_CUDA_STARTS = """
import threading
open('/proc/self/maps').read(); os.listdir('/sys')
thread = threading.Thread(target=time.sleep, args=(1,)); thread.start()
open(f'/proc/self/task/{thread.native_id}/comm', 'w').write('cuda00000')
service = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
service.setsockopt(socket.SOL_SOCKET, 16, 1)
refused = service.connect_ex('/tmp/nvidia-mps/control')
mine = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
mine.bind(f'\\0cuda-uvmfd-{os.getpid()}'); mine.listen(128)
value = [refused, missing]
"""


def test_gpu(tmp_path: Path) -> None:
    """What CUDA needs beside its devices: any ioctl, its own /proc, a socket; no more."""
    name = f"\0grade-{os.getpid()}"  # abstract: a path may be too long
    with (
        socket.socket(socket.AF_UNIX) as heard,
        Server(tmp_path, memory_bytes=None, gpu=True) as running,
    ):
        heard.bind(name)
        heard.listen()
        assert running.ask(AS_CUDA_STARTS)["value"] == [errno.ENOENT, []]
        assert running.ask("fcntl.ioctl(0, 0xC0DE)")["errno"] == errno.ENOTTY
        connect = f"socket.socket(socket.AF_UNIX).connect({name!r})"
        assert running.ask(connect)["errno"] == errno.ENOENT
        assert running.ask(connect, locked=False)["value"] is None
        listener = "mine = socket.socket(socket.AF_UNIX); mine.bind(%s)"
        assert refused(running.ask(listener % "'in_scratch'"))
        assert refused(running.ask(listener % "'\\0taken'" + "; mine.listen(1); mine.accept()"))
        for attempt in (
            *("read /etc/passwd", "read the server's environment", "read a sibling's scratch"),
            *("read a hidden package", "list processes", "TCP", "UDP", "netlink", "socketpair"),
            *("pass a descriptor", "send to an address", "fork by its number"),
        ):
            assert refused(running.ask(REFUSED.get(attempt, "os.fork()"))), attempt


def test_worker_ends_with_its_server(tmp_path: Path) -> None:
    running = Server(tmp_path)
    running._send({"code": "time.sleep(60)", "before": "", "lock": True, "scratch": str(tmp_path)})
    running._process.kill()
    running._process.communicate(timeout=40)  # returns when the last holder of the pipe is gone


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="for root only")
def test_root_keeps_no_capability(ask: Ask) -> None:
    """A worker of root stays root in name only; nothing is missing for a plain user either."""
    code = (
        "data = ctypes.create_string_buffer(24);"
        "checked(libc.capget(struct.pack('Ii', 0x20080522, 0), data));"
        "value = data.raw == bytes(24)"
    )
    assert ask(code)["value"] is True
    assert ask(code, locked=False)["value"] is False
    assert ask("value = missing", before="os.setuid(65534)")["value"] == []
    # nor would a program get one back, if it could be started
    started = (
        "import subprocess; out = subprocess.check_output(['cat', '/proc/self/status'], text=True);"
        "value = [x.split()[1].strip('0') for x in out.splitlines() if x.startswith('CapEff')]"
    )
    assert ask(started, before="ready._calls = ready._files = None")["value"] == [""]


@pytest.mark.parametrize(
    ("before", "missing"),
    [
        ("landlock.Rulesets.restrict = lambda *_: False", ["landlock"]),
        ("ready._files = None", ["landlock"]),
        ("ready._calls = None", ["seccomp"]),
        ("lock._LINUX = False", ["landlock", "privileges", "seccomp"]),
        ("ready._size = None", ["memory"]),
        (
            "lock._LINUX, lock.resource = False, None",
            [
                *("landlock", "processor time", "file size", "open files", "core dumps"),
                *("memory", "processes", "privileges", "seccomp"),
            ],
        ),
    ],
)
def test_missing_layers_are_named(ask: Ask, before: str, missing: list[str]) -> None:
    assert ask("value = missing", before=before)["value"] == missing


def test_seccomp_alone_and_landlock_alone(ask: Ask) -> None:
    assert refused(ask("socket.socket()", before="ready._files = None"))
    assert refused(ask("open('/etc/passwd')", before="ready._calls = None"))
    truncating = "os.open(root + '/open/shared.txt', os.O_RDONLY | os.O_TRUNC)"
    assert refused(ask(truncating, before="ready._files = None"))


TORCH = """
import torch, numpy
torch.manual_seed(0)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(32, 64), torch.nn.Linear(64, 8)
        self.drop = torch.nn.Dropout(0.1)
    def forward(self, x):
        return self.b(self.drop(torch.relu(self.a(x)))).softmax(-1)
model = Model()
x = torch.randn(16, 32, requires_grad=True)
(model(x) @ model(x).transpose(-2, -1)).sum().backward()
torch.optim.SGD(model.parameters(), lr=0.1).step()
torch.save(model.state_dict(), "model.pt")
model.load_state_dict(torch.load("model.pt"))
model.double()(x.double()); model.bfloat16()(x.bfloat16()); model.half()(x.half())
attention = torch.nn.MultiheadAttention(32, 4, batch_first=True)
attention(x[None], x[None], x[None])
torch.nn.functional.scaled_dot_product_attention(*(torch.randn(1, 4, 300, 16) for _ in range(3)))
torch.einsum("ij,kj->ik", x, x); torch.linalg.svd(x); torch.fft.fft(x)
torch.nn.functional.conv2d(torch.randn(1, 3, 32, 32), torch.randn(4, 3, 3, 3))
torch.from_numpy(numpy.linalg.inv(numpy.eye(64)) @ numpy.random.rand(64, 64)).numpy().sum()
torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(4, 4))
import torch.distributions.kl, torch.utils.data, numpy.testing
torch.testing.assert_close(x, x.clone())
list(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=4))
with torch.profiler.profile(profile_memory=True) as profile:
    torch.randn(100, 100) @ torch.randn(100, 100)
value = len(profile.key_averages()) > 0 and bool(torch.isfinite(x.grad).all())
os.unlink("model.pt")
"""


def test_torch(tmp_path: Path) -> None:
    """A course's operations work after the lock, with nothing of torch warmed but its import."""
    pytest.importorskip("torch")
    with Server(tmp_path, preload=("torch", "numpy"), memory_bytes=2 << 30) as running:
        answer = running.ask(TORCH)
        assert answer.get("value") is True, answer.get("text", answer)
        text = running.ask("import torch; torch.empty(1 << 32)")["text"]
        assert "allocate" in text
