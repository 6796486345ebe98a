"""The stage's example: your functions on plain and fused attention, drawn beside T and T²."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Curves, Step

LENGTHS = [128, 256, 512, 1024, 2048, 4096]
SIZES = {"d_model": 16, "num_heads": 1}
MEASURED = """
import torch
import torch.nn.functional as F


def plain(q, k, v):
    scores = q @ k.mT * q.shape[-1] ** -0.5
    shares = scores.softmax(-1)
    return shares @ v


def fused(query, key, value):
    mixed = F.scaled_dot_product_attention(query, key, value)
    return mixed
"""


def trace(submission: Any) -> Iterator[Step | Curves | str]:
    yield (
        "Your peak_bytes measures plain attention and F.scaled_dot_product_attention, with one "
        "head of 16 features."
    )
    peaks = {}
    for name in ("plain", "fused"):
        function = submission.given(MEASURED, name)
        peaks[name] = [submission.peak_bytes(function, T, **SIZES) for T in LENGTHS]
        yield Step(
            name,
            torch.tensor(peaks[name]) / 2**20,
            "T",
            says="MiB, for each number of tokens.",
            labels={"T": [str(T) for T in LENGTHS]},
            compare=False,  # a right one may count the inputs or the output
        )
    for name, sizes in peaks.items():
        power = submission.growth_exponent(LENGTHS, [max(1, size) for size in sizes])
        yield f"Your growth_exponent for {name} attention: {power:.2f}."
    start = {name: max(1, sizes[-1]) for name, sizes in peaks.items()}
    yield Curves(
        "Memory beyond the inputs",
        LENGTHS,
        {name: [max(1, size) for size in sizes] for name, sizes in peaks.items()},
        "tokens",
        "bytes",
        guides={
            "T^2": [start["plain"] * (T / LENGTHS[-1]) ** 2 for T in LENGTHS],
            "T": [start["fused"] * T / LENGTHS[-1] for T in LENGTHS],
        },
    )
    yield "To keep this picture: `grade trace memory_benchmark --out memory.svg`"
