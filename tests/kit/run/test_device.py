"""The device is what was asked for, and a GPU only if locked code can use it."""

import importlib
import signal
from types import ModuleType

import pytest

from grader.run.device import cpu_interpreter, interpreter_on
from grader.run.lanes import usable_cores
from grader.types.errors import KitError
from tests.kit.support.checkout import COURSE, TINY


def test_a_gpu_that_locked_code_cannot_use_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be none, or one that the lock or the driver keeps from it: here there is none."""
    monkeypatch.setattr("grader.run.device._may_use_gpu", lambda course, wanted: True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with interpreter_on(COURSE, COURSE.limits, "auto") as (interpreter, device):
        assert (interpreter.has_gpu, device) == (False, "cpu")
        assert interpreter.at_once > 1 or usable_cores() == 1  # it may not even open one
    with (
        pytest.raises(KitError, match="torch finds no such device here"),
        interpreter_on(COURSE, COURSE.limits, "cuda"),
    ):
        pass
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    with (
        pytest.raises(KitError, match="runs locked in a process of its own, cannot use it there"),
        interpreter_on(COURSE, COURSE.limits, "cuda"),
    ):
        pass


def test_a_ctrl_c_during_an_import_is_not_lost_and_breaks_no_import(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported = []
    real = importlib.import_module

    def importing(name: str) -> ModuleType:
        if name in TINY.preload:
            signal.raise_signal(signal.SIGINT)
            imported.append(name)
        return real(name)

    monkeypatch.setattr("grader.run.device.importlib.import_module", importing)
    with pytest.raises(KeyboardInterrupt), cpu_interpreter(TINY):
        pass
    assert imported == list(TINY.preload)
