"""The stage's example: the packed projection of three words, and a module that was fused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Heatmap, Step

WORDS = ["rivers", "carve", "stone"]
D, H = 4, 2
SEPARATE = """
from torch import nn

class Separate(nn.Module):
    def __init__(self):
        super().__init__()
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(4, 4, bias=False) for _ in range(4))
"""


def trace(submission: Any) -> Iterator[Step | Heatmap | str]:
    heads = [f"head {number}" for number in range(H)]
    labels = {"T": WORDS, "Tk": WORDS, "H": heads}
    x = torch.tensor([[[1.0, 0, 0, 1], [0, 2, 0, 1], [0, 0, 1, 0]]])
    one = torch.eye(D)
    rows = torch.cat([one, one.flip(0), 3 * one])  # what the three blocks do is easy to see
    packed_rows = {"R": [f"{part} {row}" for part in "qkv" for row in range(D)]}
    yield Step("x", x, "B T D=4", says="Three words, four features each.", labels=labels)
    yield Step(
        "w_qkv.weight",
        rows,
        "R=12 D",
        says="Three blocks of rows: the first passes x on, the second turns it around, the third "
        "triples it.",
        labels=packed_rows,
    )
    yield Step(
        "packed",
        x @ rows.T,
        "B T R",
        says="w_qkv(x): beside each other a word's query, key and value.",
        labels={"T": WORDS},
    )
    packed = {"w_qkv.weight": rows, "w_o.weight": one}
    module = submission.FusedMultiHeadAttention(D, H, bias=False)
    module.load_state_dict(packed)
    module.eval()
    output, shares = module(x)
    yield Step("weights", shares, "B H T Tk=3", says="Of your module.", labels=labels)
    yield Step("output", output, "B T D", says="w_o passes on what it gets.", labels=labels)

    separate = submission.given(SEPARATE, "Separate")
    blocks = dict(zip(("w_q", "w_k", "w_v"), rows.chunk(3), strict=True), w_o=one)
    separate.load_state_dict({f"{name}.weight": block for name, block in blocks.items()})
    made = submission.fuse(separate, H)
    found = made.state_dict().get("w_qkv.weight")
    yield Step(
        "w_qkv.weight of fuse",
        torch.zeros(0, 0) if found is None else found,
        "R D",
        says="`fuse` gets the three blocks as separate layers and stacks them: the rows above.",
        labels=packed_rows,
    )
    yield Heatmap("Attention weights", shares[0], heads, WORDS, WORDS, "query word", "key word")
