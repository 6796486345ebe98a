"""The stage's example: from four words to the output, one line of `forward` after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Heatmap, Step

WORDS = ["birds", "sing", "at", "dawn"]
D, H = 6, 2


def trace(submission: Any) -> Iterator[Step | Heatmap | str]:
    heads = [f"head {number}" for number in range(H)]
    labels = {"H": heads, "T": WORDS, "Tq": WORDS, "Tk": WORDS}
    split = f"B H={H} T d_k={D // H}"
    generator = torch.Generator().manual_seed(5)

    def draw(*shape: int, scale: float) -> torch.Tensor:
        """Numbers with one decimal, which are easy to follow by hand."""
        return (torch.randn(shape, generator=generator) * scale * 10).round() / 10

    w_q, w_k, w_v, w_o = (draw(D, D, scale=D**-0.5) for _ in range(4))
    x = draw(1, len(WORDS), D, scale=1.0)
    yield (
        "Your functions, called one after the other as `forward` does. The weights of the four "
        "layers are fixed and there are no biases; each word sees itself and those before it."
    )
    yield Step("x", x, "B T D", says="Four words, six features each.", labels=labels)

    q, k, v = x @ w_q.T, x @ w_k.T, x @ w_v.T  # (B, T, D)
    yield Step("q", q, "B T D", says="w_q(x): what each word asks for.", labels=labels)
    yield Step("k", k, "B T D", says="w_k(x): what each word has to offer.", labels=labels)
    yield Step("v", v, "B T D", says="w_v(x): what each word passes on.", labels=labels)

    q = submission.split_heads(q, H)
    yield Step("q heads", q, split, says="`split_heads`: half of the features each.", labels=labels)
    k = submission.split_heads(k, H)
    yield Step("k heads", k, split, labels=labels)
    v = submission.split_heads(v, H)
    yield Step("v heads", v, split, labels=labels)

    scores = submission.scaled_scores(q, k)
    yield Step(
        "scores",
        scores,
        f"B H Tq={len(WORDS)} Tk={len(WORDS)}",
        says="`scaled_scores`: each word (a row) with each word (a column).",
        labels=labels,
    )
    mask = submission.causal_mask(len(WORDS))
    scores = submission.apply_mask(scores, mask)
    yield Step("masked", scores, "B H Tq Tk", says="`apply_mask`: no later word.", labels=labels)
    shares = submission.attention_weights(scores)
    yield Step(
        "weights",
        shares,
        "B H Tq Tk",
        says="`attention_weights`: each row shares out 1.",
        labels=labels,
    )
    mixed = shares @ v
    yield Step(
        "context",
        mixed,
        "B H T d_k",
        says="weights @ v: the values, mixed by these shares. The first word sees only itself, so "
        "it keeps its own.",
        labels=labels,
    )
    joined = submission.concat_heads(mixed)
    yield Step("joined", joined, "B T D", says="`concat_heads`: side by side again.", labels=labels)
    output = joined @ w_o.T
    yield Step("output", output, "B T D", says="w_o(joined): the heads are mixed.", labels=labels)

    module = submission.MultiHeadAttention(D, H, bias=False)
    module.load_state_dict(
        {"w_q.weight": w_q, "w_k.weight": w_k, "w_v.weight": w_v, "w_o.weight": w_o}
    )
    module.eval()
    own_output, own_weights = module(x, x, x, mask)
    yield Step(
        "weights of your module",
        own_weights,
        "B H Tq Tk",
        says="Your forward, same layers: its weights should equal those of the steps.",
        labels=labels,
    )
    yield Step(
        "output of your module",
        own_output,
        "B T D",
        says="Its output should equal that of the steps.",
        labels=labels,
    )
    yield Heatmap(
        "Attention weights", own_weights[0], heads, WORDS, WORDS, "query word", "key word"
    )
