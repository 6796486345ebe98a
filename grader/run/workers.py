"""Starts the isolated interpreter and the workers that it forks; no other module starts them."""

from __future__ import annotations

import copy
import json
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from grader.run.lanes import usable_cores
from grader.run.scratch_root import ScratchRoot, sweep
from grader.run.worker.scratch import remove_tree
from grader.run.worker.wire import (
    TRUSTED_HEADER_CAP,
    Channel,
    Closed,
    DeadlineError,
    Frame,
    WireError,
)
from grader.types.course import Limits
from grader.types.errors import KitError, no_library

if sys.platform == "linux":
    import resource

_AT_ONCE = 8  # workers: more gain little, because one process forks and ends them all
_START_SECONDS = 120.0  # importing torch from a cold disk may take this long
_CONTROL_SECONDS = 30.0
GRACE = 0.2  # for a worker that closed its socket to end, to learn how it ended
# In the order of their imports.
_SOURCES = (
    *("wire", "packing", "bridge", "probes", "recording", "raised", "trying", "bench"),
    *("forbidden", "loader", "policy", "landlock", "seccomp", "lock", "names", "reading"),
    *("scratch", "stage_server", "server"),
)
# Only on Linux is it known to be safe to fork a process that has imported torch.
_CAN_FORK = sys.platform == "linux"
# A worker's wait status, None if there is none, or the reason why it was stopped.
End = int | str | None
_TOO_MUCH = {"files": "it wrote more files than it may", "threads": "it started too many threads"}


@dataclass(frozen=True)
class Memory:
    """The most bytes of address space that a process has had, and the bytes that it has now."""

    peak: int
    size: int


class Worker:
    """One process that runs a submission's code; talk to it through `channel`."""

    def __init__(self, channel: Channel, pid: int, scratch: str, interpreter: Interpreter) -> None:
        self.channel = channel
        self._pid = pid
        self.scratch = scratch
        self._allowed = math.inf  # seconds, when its CPU time was last limited
        self.is_used = False  # a submission may have left something in the process
        self._interpreter = interpreter

    @property
    def is_there(self) -> bool:
        """Whether it has not been ended yet."""
        return self in self._interpreter.workers

    def processor_seconds(self) -> float:
        """The CPU time used so far; 0 if the system reports it only at the end."""
        if sys.platform == "linux" and _CAN_FORK:
            with suppress(OSError):  # it has ended
                return time.clock_gettime(~self._pid << 3 | 2)  # clock_getcpuclockid(3)
        return 0.0

    def waited_seconds(self) -> float:
        """How long the process was ready to run but had no CPU core; 0 if nobody counts it."""
        try:
            with open(f"/proc/{self._pid}/schedstat", encoding="ascii") as file:
                return int(file.read().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0

    def allow(self, seconds: float) -> None:
        """Stop the process after it has used this much more CPU time, or a second more, on Linux.

        What it may use only shrinks, so a limit that was set less than a second ago still holds.
        """
        if sys.platform == "linux" and _CAN_FORK and seconds < self._allowed - 1:
            self._allowed = seconds
            most = int(self.processor_seconds() + seconds) + 1
            with suppress(OSError):  # it has ended
                _, hard = resource.prlimit(self._pid, resource.RLIMIT_CPU)
                if most < hard or hard == resource.RLIM_INFINITY:
                    resource.prlimit(self._pid, resource.RLIMIT_CPU, (most, most + 1))

    def memory(self) -> Memory | None:
        """The process's memory as the kernel reports it, None if it does not."""
        try:
            # Bytes, because a process may have a carriage return in its name.
            with open(f"/proc/{self._pid}/status", "rb") as file:
                fields = dict(line.split(b":", 1) for line in file)
            peak, size = (int(fields[key].split()[0]) << 10 for key in (b"VmPeak", b"VmSize"))
        except (OSError, KeyError):
            return None
        return Memory(peak, size)

    def release(self) -> None:
        """End the worker; if starting one is slow, keep it for the next stage instead."""
        if _CAN_FORK:
            self.end()
        else:
            self.is_used = True
            self._interpreter.idle = self

    def end(self, grace: float = 0.0) -> End:
        """End the process, by force unless it ends by itself within `grace` seconds, and clean up.

        Returns how it ended.
        """
        self.channel.close()
        self._interpreter.workers.discard(self)
        status = self._interpreter.end(self._pid, grace)
        self._interpreter.killed += grace > 0 and _is_killed(status)
        remove_tree(self.scratch)
        return status


class Interpreter:
    """A fresh isolated interpreter that shares nothing with this process but one socket.

    Its environment is empty, its standard streams are /dev/null, it has its own session (Ctrl-C in
    the terminal does not reach it), and it ends when this process ends. With `gpu` its environment
    holds what CUDA reads. Without `gpu`, this process sees no NVIDIA GPU either, unless it has
    already looked for one. Threads of this process may use it; with more than `at_once` workers at
    work at the same time, nothing is gained.
    """

    def __init__(self, preload: tuple[str, ...], limits: Limits, *, gpu: bool) -> None:
        if not gpu:
            # Otherwise a check would ask a worker for a GPU that it may not open. And once torch
            # has computed gradients where it sees a GPU, no forked process can compute any.
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        self._preload, self._limits, self.gpu = preload, limits, gpu
        self._beside: Interpreter | None = None
        self._scratch_root = ScratchRoot()
        self._setup = {
            "scratch_root": self._scratch_root.path,
            "path": _environment_path(),
            "preload": list(preload),
            "hidden": sorted(_own_entries()),
            "memory_bytes": None if gpu else limits.memory_mb << 20,
            "cpu_seconds": limits.cpu_seconds,
            "file_bytes": limits.file_mb << 20,
            "scratch_bytes": limits.scratch_mb << 20,
            "gpu": gpu,
            "fork": _CAN_FORK,
        }
        self.at_once = 1 if gpu or not _CAN_FORK else min(_AT_ONCE, usable_cores())
        self._turn = threading.RLock()  # to ask for something and receive the answer
        self._ready: Mapping[str, Any] | None = None  # what it said when it was
        self.idle: Worker | None = None
        self.workers: set[Worker] = set()
        self._seconds_of_ended = 0.0
        self.killed = 0  # workers at work that something else killed, perhaps the system
        try:
            self._process, self._control = _launch(self._setup)
            sweep()  # while the interpreter imports
        except BaseException:  # Ctrl-C, for example: no other code knows the folder yet
            self._scratch_root.remove()
            raise

    @property
    def forks(self) -> bool:
        """Whether it can have several workers at once."""
        return _CAN_FORK

    @property
    def beside(self) -> Interpreter:
        """An interpreter whose worker can run beside this one's: itself, or a second one.

        It is itself if it forks. The second one ends with this one.
        """
        if self.forks:
            return self
        if self._beside is None:
            self._beside = Interpreter(self._preload, self._limits, gpu=self.gpu)
        return self._beside

    @property
    def has_gpu(self) -> bool:
        """Whether its workers, locked as they are, can use an NVIDIA GPU. Raises KitError."""
        return bool(self._wait_until_ready()["gpu"])

    @property
    def missing_layers(self) -> tuple[str, ...]:
        """The protections that this machine lacks, found before any submission runs.

        Raises KitError if the interpreter cannot import the course's libraries.
        """
        return tuple(self._wait_until_ready()["missing_layers"])

    def processor_seconds(self) -> float:
        """The CPU time that all forked workers have used so far."""
        return self._seconds_of_ended + sum(each.processor_seconds() for each in (*self.workers,))

    def copy(self) -> Interpreter:
        """A second interpreter, forked from this one: just as warm, with workers of its own.

        It ends when it is closed or its user ends. Only on systems that fork workers.
        """
        self._wait_until_ready()
        ours, theirs = socket.socketpair()
        with theirs:
            Channel(self._control).send(Frame({"op": "copy"}))
            socket.send_fds(self._control, [b"."], [theirs.fileno()])
        other = copy.copy(self)
        other._control, other.idle, other.workers = ours, None, set()
        other._seconds_of_ended = 0.0
        return other

    def close(self) -> None:
        """End a copy and its workers."""
        self._control.close()
        for worker in self.workers:
            worker.channel.close()

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(self, *error: object) -> None:
        if self._beside is not None:
            self._beside.__exit__(*error)
        _kill(self._process)  # it may still be importing
        self.close()  # not before: both would clean up at the same time
        self._scratch_root.remove()

    def start(self, *, tests: bool = False, measured: bool = False) -> Worker:
        """Start a new worker; one that runs `tests` is forked with pytest loaded.

        A worker to be `measured` keeps no freed memory, so its size shows what it uses. Raises
        KitError if the interpreter cannot import the course's libraries.
        """
        if self.idle is not None and not measured:
            worker, self.idle = self.idle, None
            return worker
        self._wait_until_ready()
        channel = Channel(self._control, sends=TRUSTED_HEADER_CAP)
        scratch = tempfile.mkdtemp(dir=self._scratch_root.path)
        request = Frame({"op": "start", "scratch": scratch, "tests": tests, "measured": measured})
        try:
            with self._turn:
                deadline = time.monotonic() + _CONTROL_SECONDS
                channel.send(request, deadline)
                if not _CAN_FORK:
                    pid = channel.receive(deadline).header["pid"]
                    return self._made(channel, pid, scratch)
                ours, theirs = socket.socketpair()
                with theirs:
                    self._control.settimeout(_CONTROL_SECONDS)
                    socket.send_fds(self._control, [b"."], [theirs.fileno()])
                pid = channel.receive(deadline).header["pid"]
        except (Closed, DeadlineError, OSError) as error:
            remove_tree(scratch)
            raise KitError("the isolated interpreter stopped: run the command again") from error
        return self._made(Channel(ours, sends=TRUSTED_HEADER_CAP, ahead=True), pid, scratch)

    def _made(self, channel: Channel, pid: int, scratch: str) -> Worker:
        worker = Worker(channel, pid, scratch, self)
        self.workers.add(worker)
        return worker

    def prepare(self) -> None:
        """Start the next submission's worker early, while nothing else waits for it."""
        self.drop_used()
        if self.idle is None:
            self.idle = self.start()

    def drop_used(self) -> None:
        """End a worker kept for the next stage, so that no other submission gets it."""
        if self.idle is not None and self.idle.is_used:
            worker, self.idle = self.idle, None
            worker.end()

    def end(self, pid: int, grace: float) -> End:
        """End a worker and return how it ended."""
        if not _CAN_FORK:
            code = _kill(self._process)
            self._ready = None
            self._process, self._control = _launch(self._setup)
            return -code if code < 0 else code << 8
        channel = Channel(self._control)
        with self._turn:
            deadline = time.monotonic() + _CONTROL_SECONDS
            try:
                channel.send(Frame({"op": "end", "pid": pid, "grace": grace}), deadline)
                answer = channel.receive(deadline).header
            except (Closed, DeadlineError):
                return None
            self._seconds_of_ended += answer["seconds"]
        why: str | None = answer["why"]
        status: int | None = answer["status"]
        return status if why is None else why

    def _wait_until_ready(self) -> Mapping[str, Any]:
        """What the interpreter said of this machine when it was ready. Raises KitError."""
        if self._ready is not None:
            return self._ready
        try:
            answer = Channel(self._control).receive(time.monotonic() + _START_SECONDS).header
        except (Closed, DeadlineError, WireError):
            answer = {"failed": "it ended before it was ready"}
        if answer.get("library"):
            raise no_library(answer["library"], answer["failed"])
        if "failed" in answer:
            raise KitError(
                f"the isolated interpreter cannot start: {answer['failed']} "
                f"(python: {sys.executable}; is the kit installed in it?)"
            )
        self._ready = answer
        return answer


def _is_killed(status: End) -> bool:
    return (
        isinstance(status, int)
        and os.name == "posix"
        and os.WIFSIGNALED(status)
        and os.WTERMSIG(status) == signal.SIGKILL
    )


def how_it_ended(status: End) -> str:
    """How a worker ended, in words for the learner."""
    if isinstance(status, str):
        return f"Your code's process was stopped: {_TOO_MUCH[status]}"
    if status is None:
        return "The Python process that ran your code ended without an answer"
    if os.name == "posix" and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        reasons = {
            "SIGSEGV": "a segmentation fault",
            "SIGBUS": "a bus error",
            "SIGABRT": "an abort",
            "SIGXCPU": "too much CPU time",
            "SIGKILL": "it was killed, perhaps because it used too much memory",
        }
        known = {each.value: each.name for each in signal.Signals}  # most real-time signals are not
        name = known.get(number, f"signal {number}")
        return f"Your code crashed its Python process: {reasons.get(name, name)}"
    return "Your code ended its Python process (os._exit or the like) instead of returning"


def _kill(process: subprocess.Popen[bytes]) -> int:
    """Kill an interpreter and its process group, which includes its workers."""
    if os.name == "posix" and process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    return process.wait()


def _launch(setup: Mapping[str, object]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    folder = resources.files("grader.run.worker")
    sources = {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in _SOURCES}
    bootstrap = (folder / "bootstrap.py").read_text(encoding="utf-8")
    command = [sys.executable, "-I", "-X", "utf8", "-c", bootstrap]
    ours, theirs = socket.socketpair()
    with theirs:
        env = _cuda_settings() if setup["gpu"] else {}
        null = subprocess.DEVNULL
        quiet: dict[str, Any] = {"stdout": null, "stderr": null, "env": env}
        if os.name == "nt":
            env["SYSTEMROOT"] = os.environ.get("SYSTEMROOT", "")
            process = subprocess.Popen(command, stdin=subprocess.PIPE, **quiet)
            shared = theirs.share(process.pid)  # type: ignore[attr-defined]
            assert process.stdin is not None
            process.stdin.write(struct.pack("<I", len(shared)) + shared)
            process.stdin.flush()
        else:
            quiet |= {"cwd": "/", "start_new_session": True}
            process = subprocess.Popen(command, stdin=theirs.fileno(), **quiet)
    data = json.dumps({**setup, "sources": sources}).encode()
    ours.sendall(struct.pack("<I", len(data)) + data)
    return process, ours


def _cuda_settings() -> dict[str, str]:
    """The variables that say which GPUs to use and where CUDA's driver is."""
    wanted = ("CUDA_", "NVIDIA_", "LD_LIBRARY_PATH")
    return {name: value for name, value in os.environ.items() if name.startswith(wanted)}


def _environment_path() -> list[str]:
    """The entries of sys.path of the Python environment: no project, no current folder.

    An editable install adds the kit's own folder to sys.path; the worker must not have it.
    """
    import site

    folders = [sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    roots = set(map(os.path.realpath, folders))
    stdlib_zip = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    return [
        entry
        for entry in sys.path
        if os.path.basename(entry) == stdlib_zip
        or any(Path(os.path.realpath(entry)).is_relative_to(root) for root in roots)
    ]


def _own_entries() -> set[str]:
    """The names in site-packages of the kit and the courses; a worker must not read these.

    A course's folder has the name of its package, whose .dist-info lists all its files.
    """
    names = {"grader", "grader_courses"}
    for entry in filter(None, sys.path):
        names |= {f"{folder.name}-*.dist-info" for folder in Path(entry).glob("grader_courses/*")}
    try:
        files = metadata.files(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return names
    return names | {file.parts[0] for file in files if file.parts[0] != ".."}


DISTRIBUTION = "course-grader"
