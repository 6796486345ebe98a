"""Workers and the interpreters that fork them; what a worker leaves behind is removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from grader.read.submission import read_submission
from grader.run.lanes import can_fork
from grader.run.worker.wire import Closed, Frame
from grader.run.workers import Interpreter, Worker, how_it_ended, remove_tree
from grader.types.course import Limits
from grader.types.errors import SubmissionFileError


def deep(folder: Path, depth: int) -> None:
    """Folders in folders, deeper than a path may be long."""
    here = os.getcwd()
    os.chdir(folder)
    try:
        for _ in range(depth):
            os.mkdir("folder")
            os.chdir("folder")
    finally:
        os.chdir(here)


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "scratch"
    root.mkdir()
    deep(root, 1500)
    remove_tree(str(root))
    assert not list(tmp_path.iterdir())


def test_a_link_is_removed_and_not_what_it_points_to(tmp_path: Path) -> None:
    root, kept = tmp_path / "scratch", tmp_path / "kept"
    root.mkdir()
    kept.mkdir()
    (kept / "file").write_text("mine")
    (root / "link").symlink_to(kept)
    remove_tree(str(root))
    assert (kept / "file").read_text() == "mine"
    assert not root.exists()


def test_removing_what_is_gone_is_no_error(tmp_path: Path) -> None:
    remove_tree(str(tmp_path / "gone"))


def test_a_submission_of_folders_in_folders_without_end_is_refused(tmp_path: Path) -> None:
    submission = tmp_path / "submission"
    submission.mkdir()
    deep(submission, 1200)
    with pytest.raises(SubmissionFileError, match="too many folders"):
        read_submission(submission)
    remove_tree(str(submission))


@pytest.mark.skipif(os.name != "posix", reason="wait statuses are POSIX's")
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (11, "segmentation fault"),
        (9, "memory"),
        (0, "os._exit"),
        (256, "os._exit"),
        (None, "ended"),
    ],
)
def test_how_a_process_ended_is_said_in_words(status: int | None, words: str) -> None:
    assert words in how_it_ended(status)


@pytest.mark.skipif(not can_fork("cpu"), reason="no fork on this system")
def test_a_copy_has_workers_of_its_own_and_ends_with_them() -> None:
    def answers(worker: Worker) -> bool:
        load = {"files": {}, "script": None, "cells": ["x = 1"], "module": "m", "forbidden": []}
        header = {"op": "load", "aliases": [], "names": ["x"], "answered": {}, **load}
        worker.channel.send(Frame(header), time.monotonic() + 10)
        return "error" not in worker.channel.receive(time.monotonic() + 10).header

    with Interpreter((), Limits(), gpu=False) as interpreter:
        copies = [interpreter.copy(), interpreter.copy()]
        workers = [one.start() for one in (*copies, interpreter)]
        assert all(answers(worker) for worker in workers)
        copies[0].close()
        with pytest.raises(Closed):
            workers[0].channel.receive(time.monotonic() + 10)
        again = [copies[1].start(), interpreter.start()]
        assert all(answers(worker) for worker in again)
        assert workers[1].end() is not None
        copies[1].close()
    for worker in again:
        with pytest.raises(Closed):
            worker.channel.receive(time.monotonic() + 10)
    for worker in (*workers, *again):
        worker.channel.close()


WATCHING = """
import sys, torch
from torch.utils._python_dispatch import TorchDispatchMode

class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))

with Watch(), torch.profiler.profile(profile_memory=True):
    torch.ones(2) + 1
assert "torch._dynamo" not in sys.modules and "torch._inductor" not in sys.modules
"""


def test_watching_torch_does_not_import_its_compiler() -> None:
    load = {"files": {}, "script": None, "cells": [WATCHING], "module": "m", "names": []}
    with Interpreter(("torch",), Limits(), gpu=False) as interpreter:
        worker = interpreter.start()
        header = {"op": "load", "aliases": [], "answered": {}, **load}
        worker.channel.send(Frame(header), time.monotonic() + 30)
        assert worker.channel.receive(time.monotonic() + 30).header["cells"] == []
        worker.end()
