"""The hidden checks of TransformerBlock: joined with an attention that the check brings along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from grader.checking import (
    Rand,
    Submission,
    draw_state,
    expect_close,
    expect_gradients_close,
    expect_parameters,
    expect_unchanged,
    trained_parameters,
    with_state,
)

# As the course on attention has it: True means allowed, and two things are returned.
ATTENTION = """
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        def split(x):
            return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        q, k, v = split(self.w_q(query)), split(self.w_k(key)), split(self.w_v(value))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(-1)
        return self.w_o((weights @ v).transpose(1, 2).flatten(2)), weights
"""
LAYERS = ("w_q", "w_k", "w_v", "w_o")
State = Mapping[str, Tensor]


def shapes(D: int, F: int) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the parameters."""
    norms = {f"{norm}.{name}": (D,) for norm in ("norm", "mlp.norm") for name in ("weight", "bias")}
    layers = {f"attention.{layer}.weight": (D, D) for layer in LAYERS}
    biases = {f"attention.{layer}.bias": (D,) for layer in LAYERS}
    mlp = {
        "mlp.w_in.weight": (F, D),
        "mlp.w_in.bias": (F,),
        "mlp.w_out.weight": (D, F),
        "mlp.w_out.bias": (D,),
    }
    return {**norms, **layers, **biases, **mlp}


def reference(state: State, num_heads: int, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """In float64 on the CPU, by torch's own attention."""
    exact = {name: tensor.cpu().double() for name, tensor in state.items()}
    x = x.cpu().double()
    D = x.shape[-1]

    def normal(h: Tensor, norm: str) -> Tensor:
        weight, bias = exact[f"{norm}.weight"], exact[f"{norm}.bias"]
        return torch.nn.functional.layer_norm(h, (D,), weight, bias, 1e-5)

    def linear(h: Tensor, layer: str) -> Tensor:
        return h @ exact[f"{layer}.weight"].T + exact[f"{layer}.bias"]

    own = normal(x, "norm")
    q, k, v = (
        linear(own, f"attention.{layer}").unflatten(-1, (num_heads, -1)).transpose(1, 2)
        for layer in LAYERS[:3]
    )
    seen = None if mask is None else mask.cpu()
    heads = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    h = x + linear(heads.transpose(1, 2).flatten(2), "attention.w_o")
    wide = linear(normal(h, "mlp.norm"), "mlp.w_in")
    return h + linear(wide * torch.special.ndtr(wide), "mlp.w_out")


def block_of(submission: Submission, state: State, num_heads: int) -> Any:
    """The learner's block with this state, around the attention above."""
    F, D = state["mlp.w_in.weight"].shape
    attention = submission.given(ATTENTION, "MultiHeadAttention", D, num_heads)
    return with_state(submission.TransformerBlock(attention, d_model=D, d_ff=F), state)


@pytest.mark.points(10, hint=1)
@pytest.mark.parametrize(
    "B, T, D, H, F",
    [(2, 3, 4, 2, 8), (3, 5, 6, 3, 10), pytest.param(2, 4, 6, 2, 9, marks=pytest.mark.random)],
)
@pytest.mark.parametrize("offset", [0.0, 2.0])
def test_values(
    submission: Submission, rand: Rand, B: int, T: int, D: int, H: int, F: int, offset: float
) -> None:
    """First attention, then the MLP, each normalised and added"""
    state = draw_state(rand, shapes(D, F))
    x = rand(B=B, T=T, D=D) + offset
    expect_close(block_of(submission, state, H)(x), reference(state, H, x), axes="B T D")


@pytest.mark.points(6, hint=3)
@pytest.mark.parametrize("kind", ["causal", "padding"])
def test_mask(submission: Submission, rand: Rand, device: torch.device, kind: str) -> None:
    """The mask decides who sees whom"""
    B, T, D, H, F = 2, 5, 6, 2, 9
    steps = torch.arange(T, device=device)
    mask = (steps[:, None] >= steps).view(1, 1, T, T)
    if kind == "padding":
        mask = (steps < torch.tensor([[3], [5]], device=device)).view(B, 1, 1, T)
    state = draw_state(rand, shapes(D, F))
    x = rand(B=B, T=T, D=D)
    expected = reference(state, H, x, mask)
    expect_close(block_of(submission, state, H)(x, mask), expected, axes="B T D")


@pytest.mark.points(3, hint=2)
def test_parameters(submission: Submission) -> None:
    """It has a norm, the attention and the MLP, and no other parameters"""
    D, F = 4, 10
    attention = submission.given(ATTENTION, "MultiHeadAttention", D, 2)
    block = submission.TransformerBlock(attention, d_model=D, d_ff=F)
    expect_parameters(dict(block.named_parameters()), shapes(D, F))


@pytest.mark.points(1, hint=2)
@pytest.mark.parametrize("options", [{}, {"dropout": 1.0}], ids=str)
def test_dropout(submission: Submission, rand: Rand, options: dict[str, float]) -> None:
    """`dropout` is the MLP's: 1 drops all that it adds, in training"""
    D, F, H = 6, 10, 2
    state = draw_state(rand, shapes(D, F))
    attention = submission.given(ATTENTION, "MultiHeadAttention", D, H)
    made = submission.TransformerBlock(attention, d_model=D, d_ff=F, **options)
    if options:  # then the MLP adds nothing, as if its last layer were all zeros
        kept = {name: 0 * each if "w_out" in name else each for name, each in state.items()}
    x = rand(B=2, T=3, D=D)
    expected = reference(kept if options else state, H, x)
    expect_close(with_state(made, state, evaluate=False)(x), expected, axes="B T D")


@pytest.mark.points(2, hint=1)
@pytest.mark.parametrize("B, T", [(1, 4), (3, 1)])
def test_edges(submission: Submission, rand: Rand, B: int, T: int) -> None:
    """Works for a single sequence and a single token"""
    state = draw_state(rand, shapes(6, 10))
    x = rand(B=B, T=T, D=6)
    expect_close(block_of(submission, state, 3)(x), reference(state, 3, x), axes="B T D")


@pytest.mark.points(3, hint=4)
def test_gradients(submission: Submission, rand: Rand) -> None:
    """Gradients reach every parameter and the input, which is not changed"""
    state = draw_state(rand, shapes(6, 10))
    block = block_of(submission, state, 2)
    x = rand(B=2, T=3, D=6, grad=True)
    with expect_unchanged(x=x):
        result = block(x)
    learnt = trained_parameters(block, state)
    expected = reference(learnt, 2, x)
    expect_gradients_close(result, expected, {"x": x, **learnt}, rtol=1e-3, atol=1e-4)
