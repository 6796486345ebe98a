"""The example to play with: from a sentence to the output, with a mask, heads and a scale."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from grader.tracing import Control, Step

D, MOST = 8, 8  # features of a word, and words of a sentence
SCALES = (0.25, 0.5, 1, 2, 4, 8, 16, 32)
CONTROLS = (
    Control(
        "sentence",
        f"Sentence (at most {MOST} words)",
        ("the birds sing at dawn", "the cat sees the other cat"),
        kind="text",
    ),
    Control("mask", "Mask", ("causal", "none", "padding: the last word", "causal and padding")),
    Control("heads", "Heads", (1, 2, 4), start=2),
    Control("scale", "Multiply the scores by", SCALES, kind="slider", start=1),
)


def explore(
    submission: Any, sentence: str, mask: str, heads: int, scale: float
) -> Iterator[Step | str]:
    words = sentence.split()[:MOST] or ["(nothing)"]
    labels = {
        "H": [f"head {number}" for number in range(heads)],
        **dict.fromkeys(("T", "Tq", "Tk"), words),
    }
    T, d_k = len(words), D // heads

    def step(name: str, tensor: Tensor, axes: str, says: str, behind: str = "") -> Step:
        sources = tuple(filter(None, behind.split(", ")))
        return Step(name, tensor, axes, says, labels, behind=sources)

    w_q, w_k, w_v, w_o = (drawn(f"layer {name}", D, D) * 0.5 for name in "qkvo")
    x = torch.stack([drawn(word.lower(), D) for word in words])[None]  # (B, T, D)
    yield step(
        "x",
        x,
        f"B T D={D}",
        f"{D} features for each word, drawn from its letters: the same word has the same "
        "numbers, wherever it is. They say nothing about its position.",
    )
    q, k, v = x @ w_q.T, x @ w_k.T, x @ w_v.T
    yield step("q", q, "B T D", "w_q(x): what each word asks for.")
    yield step("k", k, "B T D", "w_k(x): what each word has to offer.")
    yield step("v", v, "B T D", "w_v(x): what each word passes on.")
    q, k, v = (submission.split_heads(each, heads) for each in (q, k, v))
    yield step(
        "q heads", q, f"B H={heads} Tq={T} d_k={d_k}", "`split_heads`: a part for each head."
    )
    yield step("k heads", k, f"B H Tk={T} d_k", "")
    yield step("v heads", v, "B H Tk d_k", "")

    raw = submission.scaled_scores(q, k)
    says = "`scaled_scores`: each word (a row) with each word (a column)."
    if scale != 1:
        says += f" Then times {scale:g}, which you chose."
    yield step("scores", raw * scale, "B H Tq Tk", says, "q heads, k heads")
    allowed = chosen_mask(submission, mask, T)
    if allowed is not None:
        axes = "1 1 Tq Tk" if "causal" in mask else "1 1 1 Tk"
        yield step("mask", allowed, axes, "yes where the query (row) may see the key (column).")
    masked = submission.apply_mask(raw * scale, allowed)
    says = "`apply_mask`: -inf where the query may not see the key."
    yield step("masked", masked, "B H Tq Tk", says, "q heads, k heads")
    weights = submission.attention_weights(masked)
    says = "`attention_weights`: each row shares out 1."
    yield step("weights", weights, "B H Tq Tk", says, "q heads, k heads")
    mixed = weights @ v
    says = "weights @ v: the values, mixed by these shares."
    yield step("context", mixed, "B H Tq d_k", says, "weights, v heads")
    joined = submission.concat_heads(mixed)
    yield step("joined", joined, "B T D", "`concat_heads`: side by side again.")
    output = joined @ w_o.T
    yield step("output", output, "B T D", "w_o(joined): the heads are mixed.")

    yield from saturation(submission, submission.apply_mask(raw, allowed), scale, labels)
    layers = {"w_q": w_q * scale, "w_k": w_k, "w_v": w_v, "w_o": w_o}
    yield from modules(submission, layers, heads, x, allowed, (output, weights), labels)


def drawn(word: str, *shape: int) -> Tensor:
    """Numbers with one decimal that depend only on the word."""
    generator = torch.Generator().manual_seed(zlib.crc32(word.encode()))
    return (torch.randn(shape, generator=generator) * 10).round() / 10


def chosen_mask(submission: Any, mask: str, T: int) -> Tensor | None:
    """What the learner's functions make of the choice: the mask [1, 1, T or 1, T] or None."""
    chosen = None
    if "causal" in mask:
        chosen = submission.causal_mask(T)
    if "padding" in mask:
        padding = submission.padding_mask(torch.tensor([max(1, T - 1)]), T)
        chosen = padding if chosen is None else chosen & padding
    return chosen


def saturation(
    submission: Any, scores: Tensor, scale: float, labels: dict[str, list[str]]
) -> Iterator[Step]:
    """How the softmax and its gradient change with the scale, for all scales in one call."""
    scales = torch.tensor([*SCALES, scale])
    large = (scores.detach() * scales[:, None, None, None]).requires_grad_()
    weights = submission.attention_weights(large)  # (scales, H, Tq, Tk)
    top = weights.amax(-1)
    gradient = torch.zeros_like(large)
    if top.requires_grad:
        (gradient,) = torch.autograd.grad(top.sum(), large)
    yield Step(
        "gradient",
        gradient[-1:],
        "B H Tq Tk",
        "How the largest weight of each row grows with each masked score. Where it is 0, nothing "
        "can be learnt from the score.",
        labels,
    )
    asking = scores[0, 0].isfinite().sum(-1) > 1  # rows with a choice to make
    if not asking.any():
        return
    sizes = gradient.abs().sum(-1)
    table = torch.stack([each[:-1, :, asking].mean((1, 2)) for each in (top, sizes)], -1)
    names = [f"x {each:g}{' (now)' if each == scale else ''}" for each in SCALES]
    yield Step(
        "saturation",
        table,
        "scale of=2",
        "Means over all queries that may see two words or more: the larger the scores, the nearer "
        "to 1 the largest weight, and the smaller the gradient.",
        {"scale": names, "of": ["largest weight", "gradient"]},
    )


def modules(
    submission: Any,
    layers: dict[str, Tensor],
    heads: int,
    x: Tensor,
    mask: Tensor | None,
    by_hand: tuple[Tensor, Tensor],
    labels: dict[str, list[str]],
) -> Iterator[Step | str]:
    """The learner's module and torch's own with these layers, beside the steps."""
    own = submission.MultiHeadAttention(D, heads, bias=False)
    own.load_state_dict({f"{name}.weight": weight for name, weight in layers.items()})
    own.eval()
    output, weights = own(x, x, x, mask)
    says = "`MultiHeadAttention` with these layers."
    yield Step("output of the module", output, "B T D", says, labels)
    builtin = nn.MultiheadAttention(D, heads, bias=False, batch_first=True)
    packed = {
        "in_proj_weight": torch.cat([layers[name] for name in ("w_q", "w_k", "w_v")]),
        "out_proj.weight": layers["w_o"],
    }
    shape = (1, heads, x.shape[1], x.shape[1])
    blocked = None if mask is None else (mask == 0).expand(shape)[0]  # True blocks there
    options = {"average_attn_weights": False, "attn_mask": blocked}
    theirs = torch.func.functional_call(builtin, packed, (x, x, x), options)
    yield (
        "Compared with nn.MultiheadAttention with the same layers, the module gives "
        f"{apart((output, weights), theirs)}. Compared with the steps on this page, it gives "
        f"{apart((output, weights), by_hand)}."
    )


def apart(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> str:
    """The largest differences in words."""
    found = []
    for name, mine, yours in zip(("outputs", "weights"), one, other, strict=True):
        if mine.shape != yours.shape:
            found.append(f"{name} of shape {list(mine.shape)} instead of {list(yours.shape)}")
        else:
            largest = (mine - yours).abs().max().item()
            differ = f"{name} that differ by at most {largest:.1g}"
            found.append(differ if largest else f"the same {name}")
    return " and ".join(found)
