"""What the text of a submission says."""

import time

import pytest

from grader.run.sources import libraries
from grader.types.submission import Submission
from tests.kit.support.checkout import TINY


@pytest.mark.parametrize(
    "text, named",
    [
        ("import torch, numpy as np; import matplotlib.pyplot as plt", "matplotlib.pyplot numpy"),
        (
            "def f():\n    from torch import (nn,\n        Tensor as T,\n    )",
            "torch.Tensor torch.nn",
        ),
        ("from math import *\nfrom . import a\nfrom .b import c\nimport d\ne = 1", "d math"),
        ("import smooth\nfrom helpers.deep import f\nimportant = 1", "csv json"),
        ("x = 1  # import nothing\ny = 'from a import b'\nimport\nfrom", ""),
    ],
)
def test_the_libraries_of_a_stage_are_all_that_its_code_may_import(text: str, named: str) -> None:
    stage = TINY.stages[0]
    others = {
        "smooth.py": b"import csv",
        "helpers/deep.py": b"import json",
        "plots.py": b"import x",
    }
    files = {stage.file_name: text.encode(), **others}
    assert sorted({*libraries(Submission("x", files), stage)} - {"torch"}) == named.split()


def test_the_libraries_of_a_notebook_are_those_of_all_its_cells() -> None:
    cells = ("import b", "%%time\nimport a", *(f"import c{n}" for n in range(500)))
    found = libraries(Submission("x", {}, cells=cells), TINY.stages[0])
    assert len(found) == 200
    found = libraries(Submission("x", {}, cells=cells[:2]), TINY.stages[0])
    assert found == ["a", "b"]


def test_of_a_million_names_each_is_looked_at_once() -> None:
    files = {f"f{number}.py": b"" for number in range(200)}
    files["f0.py"] = "import {}".format(",".join(f"a{n:x}" for n in range(150_000))).encode()
    stage = TINY.stages[0]
    files[stage.file_name] = b"import " + b",".join(f"f{n}".encode() for n in range(200))
    start = time.process_time()
    assert len(libraries(Submission("x", files), stage)) == 200
    assert time.process_time() - start < 2
