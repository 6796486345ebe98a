"""Chooses the device that the checks put their tensors on, and starts an interpreter for it."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from grader.run.stopping import first_interrupt
from grader.run.workers import Interpreter
from grader.types.course import Course, Limits
from grader.types.errors import KitError


@contextmanager
def cpu_interpreter(course: Course) -> Iterator[Interpreter]:
    """A new interpreter that leaves the GPU alone; this process imports the same libraries.

    Meanwhile the first Ctrl-C waits, because an import may lose it or end half done.
    """
    with Interpreter(course.preload, course.limits, gpu=False) as interpreter:
        with first_interrupt() as is_pressed:
            for name in course.preload:
                with suppress(ImportError):  # the interpreter says what is missing
                    importlib.import_module(name)
        if is_pressed():
            raise KeyboardInterrupt
        yield interpreter


@contextmanager
def interpreter_on(
    course: Course, limits: Limits, wanted: str
) -> Iterator[tuple[Interpreter, str]]:
    """A new interpreter, and the device that the checks put their tensors on.

    With "auto" it skips a GPU that locked workers cannot use. Raises KitError if such a GPU, or a
    device that is not there, is asked for by name.
    """
    gpu = _may_use_gpu(course, wanted)
    with Interpreter(course.preload, limits, gpu=gpu) as interpreter:
        if gpu:
            importlib.import_module("torch")  # while the interpreter does the same
        if not gpu or interpreter.has_gpu:
            yield interpreter, _chosen_device(course, wanted)
            return
    if wanted == "cuda" and _chosen_device(course, wanted):
        raise KitError(
            "--device cuda: torch finds the GPU, but your code, which runs locked in a process of "
            "its own, cannot use it there; try --device cpu"
        )
    with Interpreter(course.preload, limits, gpu=False) as interpreter:
        yield interpreter, _chosen_device(course, wanted)


def _chosen_device(course: Course, wanted: str) -> str:
    """The device that is wanted, or the one to take. Raises KitError if it is not there."""
    if "torch" not in course.preload:
        return "cpu"
    import torch

    torch.set_num_threads(1)
    present = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if wanted == "auto":
        return next((name for name in ("cuda", "mps") if present[name]), "cpu")
    if not present[wanted]:
        raise KitError(f"--device {wanted}: torch finds no such device here; try --device cpu")
    return wanted


def _may_use_gpu(course: Course, wanted: str) -> bool:
    """Whether the worker must be able to open a GPU; torch is not imported yet to be asked."""
    if wanted != "auto" or "torch" not in course.preload:
        return wanted == "cuda" and "torch" in course.preload
    found = importlib.util.find_spec("torch")
    folders = (found and found.submodule_search_locations) or ()
    # Beside a GPU there is often torch's CPU build.
    is_for_cuda = any(Path(folder, "lib", "libtorch_cuda.so").exists() for folder in folders)
    return is_for_cuda and os.path.exists("/dev/nvidiactl")
