"""The stage's example: what two heads hold, numbered by word and feature."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Step

WORDS = ["birds", "sing", "at", "dawn"]
HEADS = ["head 0", "head 1"]
H, D_K = 2, 3


def trace(submission: Any) -> Iterator[Step]:
    heads = torch.arange(H)[:, None, None] * D_K
    tokens = torch.arange(1, len(WORDS) + 1)[:, None] * 10
    x = (tokens + heads + torch.arange(D_K)).float()[None]  # (B, H, T, d_k)
    yield Step(
        "heads",
        x,
        "B H T d_k",
        says="The tens say which word a number belongs to, the ones which feature it is.",
        labels={"H": HEADS, "T": WORDS},
    )
    yield Step(
        "joined",
        submission.concat_heads(x),
        f"B T D={H * D_K}",
        says="Each word has its six features side by side again: the same tens in a row, and the "
        "ones from 0 to 5.",
        labels={"H": HEADS, "T": WORDS},
    )
