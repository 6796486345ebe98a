"""The stage's example: three words ask five others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Step

ASKING, ASKED = ["who", "sings", "when"], ["the", "birds", "sing", "at", "dawn"]
H, D_K = 2, 4


def trace(submission: Any) -> Iterator[Step]:
    heads = [f"head {number}" for number in range(H)]
    labels = {"H": heads, "Tq": ASKING, "Tk": ASKED}
    generator = torch.Generator().manual_seed(3)
    q = torch.randint(-2, 3, (1, H, len(ASKING), D_K), generator=generator).float()
    k = torch.randint(-2, 3, (1, H, len(ASKED), D_K), generator=generator).float()
    yield Step("q", q, "B H Tq d_k", says="What each word asks for.", labels=labels)
    yield Step("k", k, "B H Tk d_k", says="What each word has to offer.", labels=labels)
    yield Step(
        "dot products",
        torch.einsum("bhif,bhjf->bhij", q, k),
        "B H Tq Tk",
        says="Each row of q with each row of k of the same head: multiply and add up.",
        labels=labels,
    )
    yield Step(
        "scores",
        submission.scaled_scores(q, k),
        "B H Tq Tk",
        says="What you return: the products divided by sqrt(d_k) = 2.",
        labels=labels,
    )
