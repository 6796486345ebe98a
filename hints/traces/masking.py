"""The stage's example: two sentences, one of them shorter, and no look into the future."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Step

WORDS = ["birds", "sing", "at", "dawn"]
T = len(WORDS)
LENGTHS = [4, 2]


def trace(submission: Any) -> Iterator[Step]:
    labels = {"Tq": WORDS, "Tk": WORDS}
    causal = submission.causal_mask(T)
    yield Step(
        "causal",
        causal,
        f"1 1 Tq={T} Tk={T}",
        says="Each row is a word that looks: it sees itself and the words before it.",
        labels=labels,
    )
    padding = submission.padding_mask(torch.tensor(LENGTHS), T)
    yield Step(
        "padding",
        padding,
        f"B={len(LENGTHS)} 1 1 Tk",
        says="The first sentence has all four words, the second only two: what follows them "
        "is padding, and nobody sees it.",
        labels=labels,
    )
    yield Step("both", causal & padding, "B 1 Tq Tk", says="Seen only if both allow it.")
    scores = torch.tensor([[4, 1, 2, 3], [2, 5, 1, 2], [1, 3, 4, 2], [3, 2, 1, 5]]) / 2
    scores = torch.stack([scores, -scores])[:, None]  # (B, H, Tq, Tk) with one head
    yield Step("scores", scores, "B H Tq Tk", says="One head, one table for each sentence.")
    yield Step(
        "masked",
        submission.apply_mask(scores, causal & padding),
        "B H Tq Tk",
        says="What is not allowed is -inf, all the rest is as it was.",
        labels=labels,
    )
