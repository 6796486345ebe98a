"""The stage's example: ordinary rows, large scores and a row with nothing to see."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Heatmap, Step

WORDS = ["birds", "sing", "at", "dawn"]


def trace(submission: Any) -> Iterator[Step | Heatmap]:
    heads = ["head 0", "head 1"]
    labels = {"H": heads, "Tq": WORDS, "Tk": WORDS}
    scores = torch.tensor(
        [
            [[1, 0, 0, 0], [2, 1, 0, 0], [0, 1, 2, 0], [1, 1, 1, 1]],
            [[1000, 1001, 999, 1000], [0, 0, 0, 0], [-3, 3, -3, 3], [0, 1, 2, 3]],
        ],
        dtype=torch.float32,
    )[None]  # (B, H, Tq, Tk)
    seen = torch.ones(2, 4, 4, dtype=torch.bool)
    seen[0] = seen[0].tril()
    seen[1, 1] = False
    scores = scores.masked_fill(~seen, -math.inf)
    yield Step(
        "scores",
        scores,
        "B H Tq Tk",
        says="Head 0 sees no later word. Head 1 has large scores in its first row, and in its "
        "second no word that it may see.",
        labels=labels,
    )
    shares = submission.attention_weights(scores)
    yield Step(
        "weights",
        shares,
        "B H Tq Tk",
        says="-inf becomes exactly 0. Adding 1000 to a whole row would change nothing.",
        labels=labels,
    )
    yield Step(
        "row sums",
        shares.sum(-1),
        "B H Tq",
        says="Every row gives away 1 in all; the one that sees nothing gives 0.",
        labels=labels,
    )
    yield Heatmap("Weights of two heads", shares[0], heads, WORDS, WORDS, "query word", "key word")
