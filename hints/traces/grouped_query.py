"""The stage's example: four query heads, two key heads, and who reads which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.tracing import Heatmap, Step

WORDS = ["birds", "sing", "at", "dawn"]
D, H, HKV = 8, 4, 2


def trace(submission: Any) -> Iterator[Step | Heatmap | str]:
    heads = [f"head {number}" for number in range(H)]
    labels = {"T": WORDS, "Tq": WORDS, "Tk": WORDS}
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int, scale: float) -> torch.Tensor:
        """Numbers with one decimal, which are easy to follow by hand."""
        return (torch.randn(shape, generator=generator) * scale * 10).round() / 10

    state = {
        "w_q.weight": draw(D, D, scale=D**-0.5),
        "w_k.weight": draw(HKV * D // H, D, scale=D**-0.5),
        "w_v.weight": draw(HKV * D // H, D, scale=D**-0.5),
        "w_o.weight": torch.eye(D),
    }
    x = draw(1, len(WORDS), D, scale=1.0)
    yield (
        f"{H} query heads, {HKV} key heads, a head has {D // H} features. The weights of the four "
        "layers are fixed, w_o is the identity, and there are no biases."
    )
    yield Step("x", x, "B T D", says="Four words, eight features each.", labels=labels)
    keys = submission.split_heads(x @ state["w_k.weight"].T, HKV)
    yield Step(
        "keys",
        keys,
        f"B Hkv={HKV} T d_k={D // H}",
        says="`split_heads` of w_k(x): a cache keeps these, and as many values.",
        labels=labels,
    )
    module = submission.GroupedQueryAttention(D, H, HKV, bias=False)
    module.load_state_dict(state)
    module.eval()
    _, shares = module(x, x, x)
    yield Step(
        "weights",
        shares,
        f"B H={H} Tq={len(WORDS)} Tk={len(WORDS)}",
        says="Your module: the heads that share keys still look at different words.",
        labels=labels,
    )

    state["w_k.weight"] = state["w_k.weight"].clone()
    state["w_k.weight"][D // H :] = 0  # key head 1
    module.load_state_dict(state)
    _, without = module(x, x, x)
    yield Step(
        "without key head 1",
        without,
        "B H Tq Tk",
        says="The rows of key head 1 are set to 0: heads that read it look at all words alike.",
        labels=labels,
    )
    evenly = (without[0] - 1 / len(WORDS)).abs().amax(dim=(1, 2)) < 1e-6
    readers = [name for name, same in zip(heads, evenly.tolist(), strict=True) if same]
    yield f"So these read key head 1: {', '.join(readers) or 'none'}."
    yield Heatmap("Weights of four heads", shares[0], heads, WORDS, WORDS, "query word", "key word")
