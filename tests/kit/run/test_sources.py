"""What the text of a submission says."""

from __future__ import annotations

import pytest

from grader.run.sources import libraries
from grader.types.submission import Submission


@pytest.mark.parametrize(
    "text, named",
    [
        ("import torch, numpy as np; import matplotlib.pyplot as plt", "matplotlib.pyplot numpy"),
        (
            "def f():\n    from torch import (nn,\n        Tensor as T,\n    )",
            "torch.Tensor torch.nn",
        ),
        ("from math import *\nfrom . import a\nfrom .b import c\nimport d\ne = 1", "d math"),
        ("import softmax, other\nfrom helpers.deep import f\nimportant = 1", ""),
        ("x = 1  # import nothing\ny = 'from a import b'\nimport\nfrom", ""),
    ],
)
def test_the_libraries_of_a_submission_are_all_that_it_may_import(text: str, named: str) -> None:
    files = {"softmax.py": text.encode(), "other.py": b"", "helpers/deep.py": b""}
    assert sorted({*libraries(Submission("x", files))} - {"torch"}) == named.split()
    assert len(libraries(Submission("x", {}, cells=(text,) * 500 + ("import a",)))) <= 200
