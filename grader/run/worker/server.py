"""The isolated interpreter: imports the course's libraries once, then forks one worker per stage.

It never runs a line of the learner's code: only a worker does, after the lock. A worker is a forked
process or, on systems without fork, this process once it has stopped being the server. Requests on
the control socket:

    {"op": "start", "tests": bool, "measured": bool, ...}  with a socket attached: fork a worker
        that serves on it, with pytest loaded if it is to run tests, and keeping no freed memory
        if it is to be measured -> {"pid": int}
    {"op": "end", "pid": int, "grace": seconds}: end that worker
        -> {"status": wait status or null, "why": the reason why it was stopped, "files" or
            "threads", "seconds": the CPU time that it used}
    {"op": "copy"}  with a socket attached: fork another interpreter, which answers on that socket
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from grader.run.worker.bench import seed_all
from grader.run.worker.forbidden import kit_globals
from grader.run.worker.lock import Lock
from grader.run.worker.policy import Policy, python_environment
from grader.run.worker.raised import describe
from grader.run.worker.scratch import (
    OWNER,
    free_bytes,
    is_overfull,
    is_used,
    mark_unused,
    remove_tree,
)
from grader.run.worker.stage_server import StageServer
from grader.run.worker.trying import tried
from grader.run.worker.wire import TRUSTED_HEADER_CAP, Channel, Closed, Frame

_LOOK_SECONDS = 0.02  # seconds between two looks at what the workers use
_LATER_SECONDS = 0.1  # the same, when the last worker is no longer new
_A_WHILE = 5.0
# Of one worker. Libraries start one or two for each core; many more would leave hardly any
# processor time to the other workers.
_THREADS_CAP = 16 + 2 * (os.cpu_count() or 1)


def serve(control: socket.socket, setup: dict[str, Any]) -> None:
    """Import the course's libraries and answer the control socket until it closes.

    Without fork, the first start request turns this process into the worker, and the control socket
    into its channel. The "ready" message names what this machine does not lock, before any
    submission arrives.
    """
    channel = Channel(control)
    if setup["fork"]:  # whoever started us may ignore it: no worker could be waited for
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sys.path[:] = setup["path"]
    gc.disable()  # garbage collection would take a tenth of the time of importing torch
    library = ""
    try:
        for library in setup["preload"]:
            importlib.import_module(library)
        library = ""
        if "torch" in sys.modules:
            _warm_torch()
            if not setup["gpu"]:
                _look_away()
        seed_all(0)  # numpy loads its generators on first use
        lock = Lock(_policy(setup))
        missing, has_gpu = _missing_layers(lock, setup, control)
    except Exception as error:  # noqa: BLE001 - the checker reports whatever an import raises
        why = f"{type(error).__name__}: {error}"[:500]
        channel.send(Frame({"failed": why, "library": library}))
        return
    server = _Server(control, setup, lock, missing)
    try:
        channel.send(Frame({"ready": True, "missing_layers": list(missing), "gpu": has_gpu}))
        gc.freeze()
        gc.enable()
        server.run()
    except Closed:
        server.clean_up()


def _policy(setup: dict[str, Any]) -> Policy:
    return Policy(
        readable=python_environment(),
        hidden=tuple(setup["hidden"]),
        scratch_root=setup["scratch_root"],
        memory_bytes=setup["memory_bytes"],
        cpu_seconds=setup["cpu_seconds"],
        file_bytes=setup["file_bytes"],
        open_files=1024 if setup["gpu"] else 64,  # CUDA opens each device many times
        gpu=setup["gpu"],
    )


def _missing_layers(
    lock: Lock, setup: dict[str, Any], control: socket.socket
) -> tuple[tuple[str, ...], bool]:
    """What a lock cannot apply on this machine, and whether locked code can use a GPU.

    It is tried in a child that never runs a submission. Without fork this process is the one that
    locks itself, and no server watches it. Raises OSError if the child does not report.
    """
    scratch = setup["scratch_root"]
    if not setup["fork"]:
        applied = lock.apply(scratch, (0, 1, 2, control.fileno()))
        return (*applied, "disk space", "threads"), setup["gpu"] and _computes_on_gpu()
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            found = [*lock.apply(scratch, keep=[theirs])]
            gpu = str(setup["gpu"] and _computes_on_gpu())
            os.write(theirs, "\n".join([*found, gpu, "end"]).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, encoding="ascii") as said:
        answer = said.read().split("\n")
    os.waitpid(pid, 0)
    if answer[-1] != "end":
        raise OSError("a process that locks itself ends at once")
    *missing, gpu, _ = answer
    return tuple(missing), gpu == "True"


def _computes_on_gpu() -> bool:
    """Whether an NVIDIA GPU can be used; looking for one keeps a process from forking others."""
    try:
        import torch

        x = torch.ones(2, 2, device="cuda", requires_grad=True)
        (slope,) = torch.autograd.grad((x @ x).sum(), x)
        return slope.sum().item() == 16
    except Exception:  # noqa: BLE001 - a driver may fail in any way
        return False


class _Server:
    """Forks the workers, stops those that use too much, and cleans up if the parent is gone."""

    def __init__(
        self, control: socket.socket, setup: dict[str, Any], lock: Lock, missing: tuple[str, ...]
    ) -> None:
        self._control = control
        self._channel = Channel(control)
        self._setup = setup
        self._lock = lock
        self._missing = missing
        self._is_copy = False
        self._scratch: dict[int, str] = {}  # of the live workers, by pid
        self._free = 0  # bytes on their disk when the last one started
        self._stopped: dict[int, str] = {}  # and why
        self._started = 0.0
        self._kit = kit_globals()
        self._has_pytest = False

    def run(self) -> None:
        """Answer requests. Raises Closed when the other side is gone."""
        while True:
            self._watch()
            header = self._channel.receive().header
            if header["op"] == "end":
                pid = header["pid"]
                self._scratch.pop(pid, None)
                status, seconds = _end(pid, header["grace"])
                why = self._stopped.pop(pid, None)
                self._channel.send(Frame({"status": status, "why": why, "seconds": seconds}))
            elif header["op"] == "copy":
                self._copy()
            else:
                self._start(header["scratch"], tests=header["tests"], measured=header["measured"])

    def clean_up(self) -> None:
        """End all workers and remove their folders: the process that would ask for it was killed.

        If this process has become the worker there is nothing to do: `_work` never returns.
        """
        for pid, scratch in self._scratch.items():
            _end(pid, 0.0)
            remove_tree(scratch)
        if not self._is_copy:
            root = self._setup["scratch_root"]
            remove_tree(root, last=os.path.join(root, OWNER))

    def _watch(self) -> None:
        """Until a request arrives: stop workers that use too much of what no own limit bounds."""
        while self._scratch:
            is_new = time.monotonic() < self._started + _A_WHILE
            seconds = _LOOK_SECONDS if is_new else _LATER_SECONDS
            if select.select([self._control], [], [], seconds)[0]:
                return
            # Files without a name are seen only by what is missing on the disk.
            is_scarce = free_bytes(self._setup["scratch_root"]) < self._free / 2
            for pid, scratch in self._scratch.items():
                if pid not in self._stopped:
                    why = _too_much(pid, scratch, self._setup["scratch_bytes"])
                    if is_scarce and is_used(scratch):
                        why = "files"
                    if why is not None:
                        self._stopped[pid] = why
                        os.kill(pid, signal.SIGKILL)  # only this process reaps it, so it exists

    def _start(self, scratch: str, *, tests: bool, measured: bool) -> None:
        if tests and not self._has_pytest:
            tempfile.tempdir = scratch  # the system's own may be read-only for this user
            _warm_pytest()
            tempfile.tempdir = None
            self._has_pytest = True
        if not self._setup["fork"]:
            self._channel.send(Frame({"pid": os.getpid()}))
            gpu = self._setup["gpu"]
            _work(self._control, scratch, lambda: True, self._kit, gpu=gpu)  # it is locked
        _, [descriptor], _, _ = socket.recv_fds(self._control, 1, 1)
        mark_unused(scratch)
        self._free = free_bytes(scratch)
        pid = os.fork()
        if pid == 0:
            self._forget()  # the learner's code can examine this frame
            keep = (0, 1, 2, descriptor)
            # Its own, because an open file's flags are shared by all who inherit it.
            null = os.open(os.devnull, os.O_RDWR)
            for standard in keep[:3]:
                os.dup2(null, standard)
            if measured:
                _give_back_at_once()
            _work(
                socket.socket(fileno=descriptor),
                scratch,
                lambda: self._lock.apply(scratch, keep) == self._missing,
                self._kit,
                gpu=self._setup["gpu"] and not measured,  # CUDA takes gigabytes of addresses
            )
        os.close(descriptor)
        self._scratch[pid] = scratch
        self._started = time.monotonic()
        self._channel.send(Frame({"pid": pid}))

    def _copy(self) -> None:
        _, [descriptor], _, _ = socket.recv_fds(self._control, 1, 1)
        if os.fork() == 0:
            os.dup2(descriptor, self._control.fileno())  # from now on it answers that socket
            self._lock.adopt()
            self._is_copy = True
            self._forget()
        os.close(descriptor)

    def _forget(self) -> None:
        """Drop the state of another process's workers."""
        self._scratch.clear()
        self._stopped.clear()
        self._started = 0.0


def _too_much(pid: int, scratch: str, size: int) -> str | None:
    """What a worker has too much of: "files" or "threads"; None if nothing."""
    if is_overfull(scratch, size):
        return "files"
    try:
        # A folder has one link for each folder in it, and two of its own.
        threads = os.stat(f"/proc/{pid}/task").st_nlink - 2
    except OSError:
        return None
    return "threads" if threads > _THREADS_CAP else None


def _give_back_at_once() -> None:
    """Have the C library return freed memory of a page or more to the system at once.

    Otherwise it keeps most of it, and the size of the process says little about what is in use.
    """
    with suppress(AttributeError):  # some C libraries lack it
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _PAGE)


_M_MMAP_THRESHOLD, _PAGE = -3, 4096


def _work(
    connection: socket.socket,
    scratch: str,
    lock: Callable[[], bool],
    kit: frozenset[int],
    *,
    gpu: bool,
) -> NoReturn:
    """Become the worker: lock the process, serve, and end without clean-up.

    It serves only if `lock` returns what the checker was told before. A GPU is started before any
    of the learner's code runs: that takes a second, which no call of theirs should pay.
    """
    try:
        os.chdir(scratch)
        os.environ["TMPDIR"] = tempfile.tempdir = scratch
        os.environ["LOGNAME"] = "worker"  # torch asks for it, and /etc/passwd is closed
        if lock():
            if gpu:
                _computes_on_gpu()
            channel = Channel(connection, receives=TRUSTED_HEADER_CAP, ahead=True)
            StageServer(channel, kit).serve()
    finally:
        os._exit(0)


def _end(pid: int, grace: float) -> tuple[int | None, float]:
    """Reap a worker, killing it unless it ends by itself within `grace` seconds.

    Returns its wait status, None if it was reaped before, and its seconds of CPU time.
    """
    end = time.monotonic() + grace
    try:
        while time.monotonic() < end:
            done, status, used = os.wait4(pid, os.WNOHANG)
            if done:
                return status, used.ru_utime + used.ru_stime
            time.sleep(0.001)
        os.kill(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
    except (ChildProcessError, ProcessLookupError):
        return None, 0.0
    return status, used.ru_utime + used.ru_stime


class _Unasked(set[str]):
    """The modules that torch imports when code asks for them, except those of its compiler.

    The compiler must be imported by name: then it searches for itself.
    """

    def __contains__(self, name: object) -> bool:
        is_left_out = name == "_inductor" and "torch._inductor" not in sys.modules
        return super().__contains__(name) and not is_left_out


def _warm_torch() -> None:
    """Load what torch loads on first use, so that a locked worker needs no file for it.

    It uses one thread: after a tensor operation in a process with several threads, a forked child
    would hang. It computes no gradient: where there is a GPU, torch would then start a thread, and
    refuse one to all processes forked later.
    """
    import torch

    torch.set_num_threads(1)
    torch.set_num_threads = lambda nthreads: None  # a worker with too many threads is stopped
    # A learner's own mode and torch's profiler would import torch's compiler on first use,
    # only to keep out of its way: 1 to 3 s.
    mode: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
    mode._should_skip_dynamo = classmethod(lambda cls: False)
    if "_lazy_modules" in vars(torch):
        vars(torch)["_lazy_modules"] = _Unasked(vars(torch)["_lazy_modules"])
    torch.compile = _uncompiled(torch.compile)
    torch.set_default_device = _to_be_there(torch.set_default_device)
    # No tensor here is spread over machines: assert_close would import what compares such, 1 s.
    importlib.import_module("torch.testing._comparison").__dict__["_HAS_DTENSOR"] = False
    with suppress(ImportError):  # a stage may forbid its functions: 25 ms in each worker
        importlib.import_module("torch.onnx.ops")
    layer = torch.nn.Linear(4, 4)
    torch.nn.init.xavier_uniform_(layer.weight)
    heads = torch.randn(2, 3, 4, requires_grad=True)  # recorded, but without a backward pass
    weights = torch.softmax(layer(heads) @ heads.transpose(-2, -1), dim=-1)
    torch.nn.functional.dropout(weights, 0.5).double().sum()


def _look_away() -> None:
    """Let torch find that there is no GPU, once and for all.

    A locked worker that looks for itself could not open the GPU, and torch would warn of that.
    """
    import torch

    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    torch.cuda.is_available()
    del os.environ["CUDA_VISIBLE_DEVICES"]


def _uncompiled(compile: Callable[..., Any]) -> Callable[..., Any]:
    """Stands in for torch.compile: no worker may start a C++ compiler, so code runs as it is."""

    def uncompiled(model: Any = None, *, backend: Any = None, **options: Any) -> Any:
        if backend not in (None, "inductor"):
            return compile(model, backend=backend, **options)
        return (lambda function: function) if model is None else model

    return uncompiled


def _to_be_there(set_default: Callable[..., Any]) -> Callable[..., Any]:
    """Stands in for torch.set_default_device: it raises at once if the device is missing."""

    def checked(device: Any) -> None:
        sys.modules["torch"].empty(0, device=device)
        set_default(device)

    return checked


def _warm_pytest() -> None:
    """Load pytest, and all that it and its tests load on their first run."""
    import pytest

    torch = sys.modules.get("torch")
    if torch is not None:
        torch.testing.assert_close(torch.ones(1), torch.ones(1))

    class Warm:
        @pytest.mark.parametrize("number", [1, 2])
        def test_it(self, thing: Callable[[], int], number: int) -> None:
            with pytest.raises(ValueError, match="no"):
                raise ValueError("no")
            assert thing() < number

    tried(Warm, "thing", lambda: 1, describe)
    gc.collect()
    gc.freeze()
