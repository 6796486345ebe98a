"""The stage's example: two words are read, then two more, and the result is that of all four."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Step

WORDS = ["birds", "sing", "at", "dawn"]
D, H = 6, 2


def trace(submission: Any) -> Iterator[Step | str]:
    labels = {"H": [f"head {number}" for number in range(H)]}
    read, added = {**labels, "T": WORDS[:2]}, {**labels, "N": WORDS[2:]}
    every = {**labels, "all": WORDS}
    generator = torch.Generator().manual_seed(5)
    module = submission.CachedSelfAttention(D, H, bias=False)
    module.load_state_dict(
        {
            f"{layer}.weight": torch.randn(D, D, generator=generator) * D**-0.5
            for layer in ("w_q", "w_k", "w_v", "w_o")
        }
    )
    x = (torch.randn(1, 4, D, generator=generator) * 10).round() / 10
    yield Step("x", x, "B all D", says="Four words, six features each.", labels=every)

    output, cache = module(x[:, :2])
    yield Step("first output", output, "B T D", says="The first two, without a cache.", labels=read)
    yield Step("cached keys", cache[0], f"B H={H} T d_k={D // H}", labels=read)
    yield Step("cached values", cache[1], "B H T d_k", labels=read)

    output, grown = module(x[:, 2:], cache)
    yield Step(
        "second output",
        output,
        "B N D",
        says="Only the other two are passed; what they see of the first two is in the cache.",
        labels=added,
    )
    yield Step(
        "keys afterwards",
        grown[0],
        "B H all d_k",
        says="Two rows as before, and two new ones below them.",
        labels=every,
    )

    whole, _ = module(x)
    yield Step(
        "all at once",
        whole,
        "B all D",
        says="The same module, without a cache: the same four rows.",
        labels=every,
    )
    yield "Do the last two rows agree with the second output, and the first two with the first?"
