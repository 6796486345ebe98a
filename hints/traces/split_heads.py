"""The stage's example: numbers that say where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Step

WORDS = ["birds", "sing", "at", "dawn"]
HEADS = ["head 0", "head 1"]
D, H = 6, 2


def trace(submission: Any) -> Iterator[Step]:
    tokens = torch.arange(1, len(WORDS) + 1)[:, None] * 10
    x = (tokens + torch.arange(D)).float()[None]  # (B, T, D)
    yield Step(
        "x",
        x,
        "B T D",
        says="Four words, six features each. The tens say which word a number belongs to, the "
        "ones which feature it is.",
        labels={"H": HEADS, "T": WORDS},
    )
    yield Step(
        "heads",
        submission.split_heads(x, H),
        f"B H={H} T d_k={D // H}",
        says="Each head keeps every word, with three of its features: in a row all tens are the "
        "same, and all rows of a head have the same ones.",
        labels={"H": HEADS, "T": WORDS},
    )
