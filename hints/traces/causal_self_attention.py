"""The stage's example: one module, a text that fills the context and the start of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Step

WORDS = ["birds", "sing", "at", "dawn"]
D_IN, D_OUT, H = 3, 4, 2


def trace(submission: Any) -> Iterator[Step | str]:
    generator = torch.Generator().manual_seed(5)

    def draw(*shape: int) -> torch.Tensor:
        """Numbers with one decimal, which are easy to compare."""
        return (torch.randn(shape, generator=generator) * 10).round() / 10

    module = submission.CausalSelfAttention(D_IN, D_OUT, len(WORDS), H)
    sizes = {name: parameter.shape for name, parameter in module.named_parameters()}
    yield "Parameters: " + ", ".join(f"{name} {list(shape)}" for name, shape in sizes.items()) + "."
    for name, buffer in module.named_buffers():
        if buffer.numel() != len(WORDS) ** 2:
            continue
        yield Step(
            f"buffer {name}",
            buffer.reshape(len(WORDS), len(WORDS)),
            "row column",
            says="What the module keeps beside its parameters, as numbers.",
            labels={"row": WORDS, "column": WORDS},
            compare=False,  # it may say what is allowed or what is blocked
        )
    module.load_state_dict({name: draw(*shape) for name, shape in sizes.items()}, strict=False)
    module.eval()

    x = draw(1, len(WORDS), D_IN)
    yield Step("x", x, "B T d_in", says="Four words, three features.", labels={"T": WORDS})
    yield Step(
        "output",
        module(x),
        "B T d_out",
        says="The whole context, four features a word.",
        labels={"T": WORDS},
    )
    yield Step(
        "output of a shorter text",
        module(x[:, :2]),
        "B two d_out",
        says="The first two words alone: the same rows, as no later word reaches them.",
        labels={"two": WORDS[:2]},
    )
    other = x.clone()
    other[:, 3] = draw(D_IN)
    yield Step(
        "output with another ending",
        module(other),
        "B T d_out",
        says="The last word is another one. Only its own row may differ.",
        labels={"T": [*WORDS[:3], "dusk"]},
    )
