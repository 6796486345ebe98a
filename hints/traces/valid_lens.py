"""The stage's example: the heads of two sequences, then queries that look at so many keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Step

D, H = 4, 2
KEYS = ["birds", "sing", "at", "dawn"]


def trace(submission: Any) -> Iterator[Step | str]:
    folds = [f"sequence {b}, head {h}" for b in range(2) for h in range(H)]
    x = torch.tensor(
        [[[10 * token + feature + 100 * b for feature in range(D)] for token in range(2)]
         for b in (1, 2)]
    )  # fmt: skip
    yield Step(
        "x",
        x,
        "B T D",
        says="Hundreds tell the sequence, tens the token, ones the feature.",
    )
    folded = submission.transpose_qkv(x, H)
    yield Step(
        "transpose_qkv(x)",
        folded,
        f"BH T d_k={D // H}",
        says="Four short sequences: two heads of the first, then two of the second.",
        labels={"BH": folds},
    )
    yield Step(
        "transpose_output of it",
        submission.transpose_output(folded, H),
        "B T D",
        says="As it was.",
    )

    generator = torch.Generator().manual_seed(5)

    def draw(*shape: int) -> torch.Tensor:
        """Numbers with one decimal, which are easy to compare."""
        return (torch.randn(shape, generator=generator) * 10).round() / 10

    wide = H * len(KEYS)
    module = submission.ValidLensAttention(wide, H)
    module.load_state_dict(
        {
            "w_q.weight": draw(wide, 3),
            "w_k.weight": draw(wide, 5),
            "w_v.weight": torch.eye(len(KEYS)).repeat(H, 1),
            "w_o.weight": torch.eye(wide),
        }
    )
    module.eval()
    queries, keys, values = draw(1, 3, 3), draw(1, 4, 5), torch.eye(len(KEYS))[None]
    yield (
        "Now a module of two heads with four features each, three queries and four keys. Value "
        "number i has its only 1 in feature i, w_v copies it into both heads, and w_o is the "
        "identity: so features 0 to 3 of the output are the weights of head 0, 4 to 7 of head 1."
    )
    lens = torch.tensor([[1, 2, 0]])
    yield Step("valid_lens", lens, "1 Tq", says="A length for each of the three queries.")
    yield Step(
        "output",
        module(queries, keys, values, lens),
        f"1 Tq features={wide}",
        says="All to the first key; shared between two; and nothing at all.",
    )
    yield Step(
        "output without lengths",
        module(queries, keys, values),
        "1 Tq features",
        says="Every query shares out 1 among all four keys, in each head.",
    )
