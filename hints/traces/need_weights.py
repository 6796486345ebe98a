"""The stage's example: the same output twice, once with the weights and once without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Heatmap, Step

WORDS = ["snow", "falls", "on", "cedars"]
D, H = 4, 2


def trace(submission: Any) -> Iterator[Step | Heatmap | str]:
    heads = [f"head {number}" for number in range(H)]
    labels = {"Tq": WORDS, "Tk": WORDS, "H": heads}
    generator = torch.Generator().manual_seed(3)
    x = (torch.randn(1, len(WORDS), D, generator=generator) * 10).round() / 10
    module = submission.OptionalWeightsAttention(D, H)
    module.load_state_dict(
        {
            **{
                f"w_{name}.weight": torch.eye(D).roll(shift, 0) for shift, name in enumerate("qkvo")
            },
            **{f"w_{name}.bias": torch.zeros(D) for name in "qkvo"},
        }
    )
    module.eval()
    yield Step("x", x, "B Tq D", says="Four words, four features each.", labels=labels)
    output, shares = module(x, x, x)
    yield Step("output", output, "B Tq D", says="With need_weights=True.", labels=labels)
    yield Step("weights", shares, f"B H={H} Tq Tk={len(WORDS)}", labels=labels)
    other, nothing = module(x, x, x, need_weights=False)
    yield Step("output again", other, "B Tq D", says="With need_weights=False.", labels=labels)
    second = "None" if nothing is None else "not None"
    yield f"The second result is {second} this time."
    held = [shape for shape in submission.held_by(module) if shape[-2:] == (len(WORDS),) * 2]
    kept = [shape for shape in held if len(shape) > 2]
    yield (
        f"Your module still holds tensors of shape {', '.join(map(str, kept))}."
        if kept
        else "Your module holds no tensor of the weights' shape now."
    )
    yield Heatmap("Attention weights", shares[0], heads, WORDS, WORDS, "query word", "key word")
