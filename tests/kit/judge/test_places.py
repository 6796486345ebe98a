"""Whether a stage is written, where no check can tell."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from grader.judge.places import is_begun, is_replaced, is_written
from grader.types.course import EntryPoint, Stage
from grader.types.submission import Submission

STAGE = Stage("fold", "Fold", 1, False, (), (EntryPoint("fold", ("any",)),), Path())
WRITTEN = "def fold(sheet):\n    return sheet // 2\n"


def folder(source: str) -> Submission:
    return Submission("mine", {"fold.py": source.encode()})


STUB = "def fold(a):\n    raise NotImplementedError('fold is not written yet')\n"


@pytest.mark.parametrize(
    "submission, written",
    [
        (folder(WRITTEN), True),
        (folder(STUB), False),
        (folder("def fold(a:\n    return (\n"), True),  # checks elsewhere will say what is wrong
        (folder("fold = lambda a: a"), True),
        (folder("def folds(a):\n    return a\n"), False),
        (Submission("nothing", {}), False),
        (Submission("nb", {}, cells=(STUB, "def fold(a):\n    return a\n")), True),
        (Submission("nb", {}, cells=("def fold(a):\n    return a\n", STUB)), False),
        (Submission("nb", {}, cells=("%%grade fold\ndef fold(a):\n    return a\n",)), True),
    ],
)
def test_whether_a_stage_is_written(submission: Submission, written: bool) -> None:
    assert is_written(submission, STAGE) is written


@pytest.mark.parametrize(
    "cells, replaced",
    [
        ((WRITTEN, STUB), True),
        ((WRITTEN, "x = 1", STUB, "fold(2)"), True),
        ((STUB, WRITTEN), False),
        ((STUB, STUB), False),
        (("fold = None; del fold", STUB), False),  # as `%%grade` forgets what ran before
        ((STUB,), False),
        ((WRITTEN,), False),
    ],
)
def test_whether_a_stub_below_replaces_what_is_written(
    cells: tuple[str, ...], replaced: bool
) -> None:
    assert is_replaced(Submission("nb", {}, cells=cells), STAGE) is replaced
    assert is_replaced(folder("\n".join(cells)), STAGE) is replaced


def test_empty_lines_without_end_take_no_time() -> None:
    start = time.process_time()
    assert is_written(folder(WRITTEN + "\n" * 500_000), STAGE)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("submission", "begun"),
    [
        (Submission("x", {"fold.py": STUB.encode()}), False),
        (Submission("x", {"fold.py": STUB.replace("\n", "\r\n").encode("utf-8-sig")}), False),
        (Submission("x", {}), False),
        (Submission("x", {"fold.py": b""}), False),
        (Submission("x", {"fold.py": b"oops ("}), True),
        (Submission("x", {"fold.py": STUB.replace("raise", "pass #").encode()}), True),
        (Submission("x", {"a.py": b"def other(): pass"}, script="a.py"), False),
        (Submission("x", {"a.py": b"x = 1\ndef fold(s):\n    return s"}, script="a.py"), True),
        (Submission("x", {}, cells=("print(1)", "folded = 1")), False),
        (Submission("x", {}, cells=("x = 1", "def fold(s): return s")), True),
        (Submission("x", {}, cells=("fold([1])", "grade_here('fold')")), False),
        (Submission("x", {}, cells=("if 1:\n    fold = lambda s: s",)), True),
        (Submission("x", {}, cells=("from mine import f as fold",)), True),
        (Submission("x", {}, cells=("new = 'fold'", "globals()[new] = abs")), True),
        (Submission("x", {}, cells=("exec('fold = abs')",)), True),
        (Submission("x", {}, cells=("from math import *", "model.eval()")), False),
        (Submission("x", {}, cells=(STUB,)), True),  # it may hold more than one stage
    ],
)
def test_whether_a_stage_is_begun(submission: Submission, begun: bool) -> None:
    assert is_begun(submission, STAGE, STUB) is begun


TESTS = replace(STAGE, entry_points=(EntryPoint("make_bird", (), is_fixture=True),))
TEST = "def test_wings(make_bird):\n    assert make_bird().wings\n"
IN_CLASS = "class TestWings:\n    def test_wings(self, make_bird):\n        assert make_bird()\n"
TEST_STUB = "def test_wings(make_bird):\n    raise NotImplementedError('not yet')\n"


@pytest.mark.parametrize(
    "submission, begun, written",
    [
        (folder(TEST), True, True),
        (folder(TEST_STUB), False, False),
        (Submission("nb", {}, cells=("x = 1", TEST)), True, True),
        (Submission("nb", {}, cells=(IN_CLASS,)), True, True),
        (Submission("nb", {}, cells=("def test_x(): pass", "make = 1")), False, False),
        (Submission("x", {"a.py": TEST.encode()}, script="a.py"), True, True),
        (Submission("x", {"a.py": b"make_bird = 3"}, script="a.py"), False, False),
    ],
)
def test_whether_tests_are_begun_and_written(
    submission: Submission, begun: bool, written: bool
) -> None:
    assert is_begun(submission, TESTS, TEST_STUB) is begun
    assert is_written(submission, TESTS) is written
