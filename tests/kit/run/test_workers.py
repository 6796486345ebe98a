"""Workers and the interpreters that fork them: nothing outlives whoever started them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grader.engine import Engine, Request, grade, with_engine
from grader.run import workers
from grader.run.lanes import can_fork
from grader.run.solutions import solution_files
from grader.run.worker.wire import Closed, Frame
from grader.run.workers import End, Interpreter, Worker, how_it_ended
from grader.types.course import Limits
from grader.types.report import Report, Status
from grader.types.submission import Submission
from tests.kit.support.checkout import COURSE, TINY
from tests.kit.support.processes import alive, until


def run_cells(worker: Worker, *cells: str, names: tuple[str, ...] = ()) -> bool:
    """Whether a worker runs these cells, and finds these names in them."""
    load = {"files": {}, "script": None, "cells": cells, "module": "m", "forbidden": []}
    more = {"aliases": [], "answered": {}, "only_definitions": False, "names": names}
    worker.channel.send(Frame({"op": "load", **load, **more}), time.monotonic() + 60)
    header = worker.channel.receive(time.monotonic() + 60).header
    return "error" not in header and header["cells"] == []


@pytest.mark.skipif(os.name != "posix", reason="wait statuses are POSIX's")
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (11, "segmentation fault"),
        (9, "memory"),
        (40, "signal 40"),
        (0, "os._exit"),
        (256, "os._exit"),
        (None, "ended"),
        ("files", "more files than it may"),
        ("threads", "too many threads"),
    ],
)
def test_how_a_process_ended_is_said_in_words(status: End, words: str) -> None:
    assert words in how_it_ended(status)


@pytest.mark.skipif(not can_fork("cpu"), reason="no fork on this system")
def test_a_copy_has_workers_of_its_own_and_ends_with_them() -> None:
    def answers(worker: Worker) -> bool:
        return run_cells(worker, "x = 1", names=("x",))

    with Interpreter((), Limits(), gpu=False) as interpreter:
        copies = [interpreter.copy(), interpreter.copy()]
        workers = [one.start() for one in (*copies, interpreter)]
        assert all(answers(worker) for worker in workers)
        copies[0].close()
        with pytest.raises(Closed):
            workers[0].channel.receive(time.monotonic() + 10)
        assert until(lambda: not os.path.exists(workers[0].scratch), 10)
        again = [copies[1].start(), interpreter.start()]
        assert all(answers(worker) for worker in again)
        assert workers[1].end() is not None
        copies[1].close()
    for worker in again:
        with pytest.raises(Closed):
            worker.channel.receive(time.monotonic() + 10)
    for worker in (*workers, *again):
        worker.channel.close()


def test_who_grades_without_a_gpu_sees_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with Interpreter((), Limits(), gpu=True):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"
    with Interpreter((), Limits(), gpu=False):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.slow
def test_a_gpus_interpreter_gets_what_cuda_reads_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/lib64-nvidia")
    asked = "import os; x = sorted(n for n in os.environ if n not in ('LC_CTYPE', 'TMPDIR'))"
    cuda = f"{asked}\nassert x == ['CUDA_VISIBLE_DEVICES', 'LD_LIBRARY_PATH', 'LOGNAME'], x"
    for gpu, code in ((True, cuda), (False, f"{asked}\nassert x == ['LOGNAME'], x")):
        with Interpreter((), Limits(), gpu=gpu) as interpreter:
            assert not interpreter.has_gpu
            assert run_cells(interpreter.start(), code)


WATCHING = """
import sys, torch
from torch.utils._python_dispatch import TorchDispatchMode

class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))

with Watch(), torch.profiler.profile(profile_memory=True):
    torch.ones(2) + 1
torch.testing.assert_close(torch.ones(1), torch.ones(1))
assert not {"torch._dynamo", "torch._inductor", "sympy"} & {*sys.modules}
"""


def test_watching_and_comparing_do_not_import_torchs_compiler(interpreter: Interpreter) -> None:
    worker = interpreter.start()
    assert run_cells(worker, WATCHING)
    worker.end()


def test_no_worker_has_to_import_what_a_stage_forbids(interpreter: Interpreter) -> None:
    forbidden = [name for stage in COURSE.stages for name in stage.forbidden]
    assert any(name.startswith("torch.onnx.ops.") for name in forbidden)
    worker = interpreter.start()
    assert run_cells(worker, 'import sys\nassert "torch.onnx.ops" in sys.modules')
    worker.end()


PAGES = """
import resource
assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt < 1300
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks workers")
def test_a_new_worker_leaves_the_memory_that_it_shares_with_the_interpreter_alone(
    interpreter: Interpreter,
) -> None:
    """It has to copy each page that it writes to. A look at all modules writes to a thousand."""
    worker = interpreter.start()
    assert run_cells(worker, PAGES)
    worker.end()


OF_TORCH = """
import torch
from torch import nn
from torch.autograd import forward_ad, gradcheck
from torch.func import hessian, jacfwd, jacrev, vmap
from torch.nn.attention.bias import causal_lower_right
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.checkpoint import checkpoint

@torch.compile
def squares(x):
    return x * x

@torch.compile(fullgraph=True)
def cubes(x):
    return x * x * x

x = torch.rand(3, dtype=torch.double, requires_grad=True)
heads = torch.rand(1, 2, 4, 4)
layer = torch.compile(nn.Linear(3, 3))
---
torch.testing.assert_close(jacrev(squares)(x), 2 * x.diag())
---
torch.testing.assert_close(vmap(jacfwd(cubes))(x), 3 * x * x)
---
hessian(lambda x: cubes(x).sum())(x)
---
assert gradcheck(cubes, (x,), check_forward_ad=True, check_batched_grad=True)
---
with forward_ad.dual_level():
    forward_ad.unpack_dual(forward_ad.make_dual(x, x) * 2)
---
checkpoint(squares, x, use_reentrant=False).sum().backward()
---
layer(torch.ones(2, 3)).sum().backward()
torch.optim.Adam(layer.parameters()).step()
---
nn.functional.scaled_dot_product_attention(heads, heads, heads, causal_lower_right(4, 4))
---
flex_attention(heads, heads, heads)
---
assert nn.Linear(2, 2, device="meta")(torch.ones(3, 2, device="meta")).shape == (3, 2)
---
torch.set_num_threads(64)
assert torch.get_num_threads() == 1
---
try:
    torch.set_default_device("mps")
except Exception:
    assert torch.ones(2).device.type == "cpu"
else:
    assert torch.backends.mps.is_available()
---
torch.jit.script(nn.Linear(2, 2)), torch.jit.trace(nn.Linear(2, 2), torch.ones(2))
---
torch.fx.symbolic_trace(nn.Linear(2, 2))(torch.ones(2))
---
import tempfile
with tempfile.TemporaryDirectory() as folder:
    torch.save(layer.state_dict(), f"{folder}/layer.pt")
    layer.load_state_dict(torch.load(f"{folder}/layer.pt"))
"""


# To autograd a device is there: it starts a thread for it, which no forked process has.
A_GPU = """
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
_setup_privateuseone_for_python_backend()
"""


@pytest.mark.slow
@pytest.mark.parametrize("device", [False, True], ids=["", "with a GPU"])
def test_what_torch_loads_when_it_is_first_used_is_there_in_a_worker(
    *, device: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiling needs a C++ compiler, which no worker may start: code runs as it is written."""
    (tmp_path / "a_gpu.py").write_text(A_GPU if device else "", encoding="utf-8")
    path = [*workers._environment_path(), str(tmp_path)]
    monkeypatch.setattr(workers, "_environment_path", lambda: path)
    with Interpreter((*COURSE.preload, "a_gpu"), Limits(), gpu=False) as interpreter:
        for tests in (False, True):  # with pytest loaded there is more
            worker = interpreter.start(tests=tests)
            assert run_cells(worker, *OF_TORCH.split("---\n"))
            worker.end()


GRADER = """
import sys, time
from grader.run.workers import Interpreter
from grader.types.course import Limits

with Interpreter(tuple(sys.argv[2:]), Limits(), gpu=False) as interpreter:
    print(interpreter._process.pid, flush=True)
    if sys.argv[1] == "working":
        worker = interpreter.start()
        open(worker.scratch + "/file", "w").close()
        print(worker._pid, interpreter.copy().start()._pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the worker cleans up nothing")
@pytest.mark.parametrize("when", ["working", "importing"])
def test_a_grader_that_is_killed_leaves_nothing_behind(tmp_path: Path, when: str) -> None:
    preload = ["numpy"] if when == "importing" else []
    process = subprocess.Popen(
        [sys.executable, "-c", GRADER, when, *preload],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    pids = [*map(int, process.stdout.readline().split())]
    if when == "working":
        pids += map(int, process.stdout.readline().split())
        assert list(tmp_path.glob("grade-*/*/file"))
    assert os.listdir(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert until(lambda: not os.listdir(tmp_path) and not alive(pids), 20)


def test_without_a_server_that_watches_it_is_said_what_is_not_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on a system without fork, where the interpreter becomes the worker."""
    monkeypatch.setattr("grader.run.workers._CAN_FORK", False)
    stages = TINY.stages[:1]
    request = Request(Submission("solutions", solution_files(TINY)), stages, 5)
    report = grade(TINY, request)
    assert report.score == stages[0].points
    (note,) = [note for note in report.notes if "complete lock" in note]
    assert "disk space, threads" in note


def test_without_fork_no_process_runs_two_submissions(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process runs the stages of a submission one after the other; the next one is fresh."""
    monkeypatch.setattr("grader.run.workers._CAN_FORK", False)
    stages, right = TINY.stages[:1], solution_files(TINY)
    hostile = {stages[0].file_name: b"import numpy\nnumpy.array = None\n"}

    def body(engine: Engine) -> list[float]:
        requests = [Request(Submission("one", files), stages, 5) for files in (hostile, right)]
        return [engine.grade(request).score for request in requests]

    assert with_engine(TINY, stages, "cpu", body) == [0, stages[0].points]


def test_without_fork_an_earlier_stage_is_found_to_be_the_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The course's own stage answers in a process of its own, beside the learner's one."""
    monkeypatch.setattr("grader.run.workers._CAN_FORK", False)
    first, second = TINY.stages[:2]
    wrong = b"def moving_average(values, width): pass\n"
    files = {**solution_files(TINY), first.file_name: wrong}

    def body(engine: Engine) -> list[Report]:
        # Twice: the second process is kept.
        return [engine.grade(Request(Submission("x", files), (second,), 5)) for _ in range(2)]

    for report in with_engine(TINY, (first, second), "cpu", body):
        assert (report.stages[0].status, report.stages[0].caused_by) == (Status.FAILED, first.slug)


# The child that tells what is missing has the folder of all workers, each worker one in it.
LESS_LOCKED = """
import os
import grader.run.worker.lock as lock
applied = lock.Lock.apply

def apply(self, scratch, keep):
    missing = applied(self, scratch, keep)
    return missing if os.path.basename(scratch).startswith("grade-") else ("landlock", *missing)

lock.Lock.apply = apply
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks workers")
def test_a_worker_that_is_less_locked_than_was_said_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter's own child tells what is missing, before there is any worker."""
    (tmp_path / "later.py").write_text(LESS_LOCKED, encoding="utf-8")
    path = [*workers._environment_path(), str(tmp_path)]
    monkeypatch.setattr(workers, "_environment_path", lambda: path)
    with Interpreter(("later",), Limits(), gpu=False) as interpreter:
        assert interpreter.missing_layers == ()
        with pytest.raises(Closed):
            interpreter.start().channel.receive(time.monotonic() + 10)


def test_pytest_is_loaded_for_those_alone_who_run_tests() -> None:
    with Interpreter((), Limits(), gpu=False) as interpreter:
        for tests in (False, True):
            worker = interpreter.start(tests=tests)
            assert run_cells(worker, f"import sys\nassert ('pytest' in sys.modules) is {tests}")
            worker.end()
