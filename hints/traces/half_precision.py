"""The stage's example: scores that float16 cannot hold, and what each dtype makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Step

KEYS = ["key 0", "key 1", "key 2"]


def trace(submission: Any) -> Iterator[Step | str]:
    labels = {"Tq": ["query"], "Tk": KEYS}
    q = torch.tensor([150.0, 150, 150, 20])[None, None, None]
    k = torch.tensor([[150.0, 150, 150, 150], [150, 150, 150, 149.875], [150, 150, 150, 148]])
    k = k[None, None]
    v = torch.tensor([[100.0, 0, 0, 1], [0, 100, 0, 1], [0, 0, 100, 1]])[None, None]
    yield Step("q", q, "B H Tq d_k", says="One query.", labels=labels)
    yield Step(
        "k",
        k,
        "B H Tk d_k",
        says="Three keys that differ by little. float16 holds all of these numbers exactly.",
        labels=labels,
    )
    yield Step("dot products in float32", q @ k.mT, "B H Tq Tk", says="As they are.", labels=labels)
    yield Step(
        "in float16", (q @ k.mT).half(), "B H Tq Tk", says="Nothing is beyond 65504.", labels=labels
    )
    yield Step(
        "in bfloat16",
        (q @ k.mT).bfloat16(),
        "B H Tq Tk",
        says="No overflow, but steps of 512: the three keys have become one.",
        labels=labels,
    )
    yield Step(
        "weights",
        submission.attention_weights(submission.scaled_scores(q, k)),
        "B H Tq Tk",
        says="Your own functions on float32: the third key gets next to nothing.",
        labels=labels,
    )
    yield Step("v", v, "B H Tk d_k", says="Value i is 100 in feature i.", labels=labels)
    for dtype in (torch.float32, torch.float16):
        name = str(dtype).removeprefix("torch.")
        yield Step(
            f"result in {name}",
            submission.stable_attention(q.to(dtype), k.to(dtype), v.to(dtype)),
            "B H Tq d_k",
            says="`stable_attention`: the weights in per cent, and a 1 for their sum."
            if dtype == torch.float32
            else "The same numbers in half precision, up to three or four digits.",
            labels=labels,
        )
