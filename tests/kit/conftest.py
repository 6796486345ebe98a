"""What all tests of the kit share. `pytest` alone, all the quick tests, takes three processes."""

import gc
import os
import signal
import sys
from collections.abc import Iterator

import pytest

from grader.run import device
from grader.run.workers import Interpreter
from tests.kit.support.birds import birds, workspace
from tests.kit.support.checkout import COURSE
from tests.kit.support.learner import two_pytests_at_once
from tests.kit.support.tiny import checks_apart, course, grade, here, refused, say, tiny
from tests.kit.support.warm import warm_interpreters

__all__ = ["birds", "checks_apart", "course", "grade", "here", "refused", "say", "tiny"]
__all__ += ["two_pytests_at_once", "workspace"]  # fixtures for the tests of every wing
# jsonschema, which nbformat imports, knows addresses without it, and it takes seconds to import.
sys.modules["rfc3987_syntax"] = None


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Share the files among three processes, unless anything is asked for.

    Tests wait a lot, and three keep two CPU cores busy. A single test, a debugger and the long
    tests, some of which take all cores, run in one.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts its background jobs so, but tests press Ctrl-C in what they start.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    is_open = config.getoption("numprocesses", 0) is None  # xdist is there, and PYTEST_ADDOPTS mute
    is_one_of_them = "PYTEST_XDIST_WORKER" in os.environ  # or a test has started it: no end of them
    if is_open and not is_one_of_them and not config.invocation_params.args:
        config.option.numprocesses = 3
        config.option.dist = "loadfile"  # what a file sets up is set up once
        config.option.loadscopereorder = False


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect thousands of tests without looking for garbage, and never look at them again.

    Otherwise each process that a test forks copies the memory that holds them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _warm() -> Iterator[None]:
    with warm_interpreters(), pytest.MonkeyPatch.context() as patch:
        # Or what was collected is looked at again after `grade verify`: half a second each time.
        patch.setattr(gc, "unfreeze", lambda: None)
        yield


@pytest.fixture(scope="session")
def interpreter(_warm: None) -> Iterator[Interpreter]:
    """The course's isolated interpreter, a copy of the warm one. No worker changes it."""
    import torch

    torch.set_num_threads(1)  # as the engine does: two processes take turns
    with device.Interpreter(COURSE.preload, COURSE.limits, gpu=False) as interpreter:
        yield interpreter
