"""The stage's example: your function with every kind of mask, and the memory that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Curves, Step

WORDS = ["ice", "melts", "in", "spring"]
LENGTHS = [256, 512, 1024, 2048]


def trace(submission: Any) -> Iterator[Step | Curves | str]:
    T = len(WORDS)
    labels = {"Tq": WORDS, "Tk": WORDS, "T": WORDS}
    generator = torch.Generator().manual_seed(4)
    q, k = (torch.randn(1, 1, T, 2, generator=generator).round() for _ in range(2))
    v = torch.tensor([[[[1.0, 0], [2, 0], [4, 0], [8, 1]]]])
    yield Step("q", q, "B H Tq d_k", says="Four words, one head, two features.", labels=labels)
    yield Step("k", k, "B H Tk d_k", labels=labels)
    yield Step("v", v, "B H Tk d_k", labels=labels)
    yield Step(
        "no mask",
        submission.flash_attention(q, k, v),
        "B H Tq d_k",
        says="Shares of all four values.",
        labels=labels,
    )
    yield Step(
        "causal",
        submission.flash_attention(q, k, v, causal=True),
        "B H Tq d_k",
        says="The first word sees only itself, and no word but the last has seen the last.",
        labels=labels,
    )
    mask = torch.tensor([[0, 1, 1, 0]])
    yield Step(
        "mask and causal",
        submission.flash_attention(q, k, v, mask, causal=True),
        "B H Tq d_k",
        says="Only the second and third word may be seen, and no later one: there is nothing left "
        "for the first.",
        labels=labels,
    )
    peaks = []
    for length in LENGTHS:
        long = torch.randn(1, 2, length, 8, generator=generator)
        with submission.measured() as usage, torch.no_grad():
            submission.flash_attention(long, long, long)
        peaks.append(max(1, usage.peak))
    yield "The memory that your function takes for more and more tokens, without a mask:"
    yield Curves(
        "Memory beyond the inputs",
        LENGTHS,
        {"yours": peaks},
        "tokens",
        "bytes",
        guides={
            "T^2": [peaks[0] * (length / LENGTHS[0]) ** 2 for length in LENGTHS],
            "T": [peaks[0] * length / LENGTHS[0] for length in LENGTHS],
        },
    )
