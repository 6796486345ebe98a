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
        says="As before.",
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
    queries, keys = draw(2, 3, 3) / 4, draw(2, 4, 5)
    values = torch.eye(len(KEYS)).expand(2, -1, -1)
    yield (
        "Now a module of two heads with four features each, for two sequences of three queries "
        "and four keys. Value number i has its only 1 in feature i, w_v copies it into both heads, "
        "and w_o is the identity: so features 0 to 3 of the output are the weights of head 0, and "
        "features 4 to 7 are those of head 1."
    )
    lens = torch.tensor([[1, 2, 0], [3, 4, 1]])
    yield Step("valid_lens", lens, "B Tq", says="A length for each query of each sequence.")
    yield Step(
        "output",
        module(queries, keys, values, lens),
        f"B Tq features={wide}",
        says="In sequence 0 all goes to the first key, then to the first two, then to none.",
    )
    yield Step(
        "output without lengths",
        module(queries, keys, values),
        "B Tq features",
        says="Every query shares out 1 among all four keys, in each head.",
    )
