"""The hidden checks of ResidualMLP."""

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
    expect_equal,
    expect_gradients_close,
    expect_parameters,
    expect_unchanged,
    trained_parameters,
    with_state,
)

State = Mapping[str, Tensor]


def shapes(D: int, F: int) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the parameters."""
    return {
        "norm.weight": (D,),
        "norm.bias": (D,),
        "w_in.weight": (F, D),
        "w_in.bias": (F,),
        "w_out.weight": (D, F),
        "w_out.bias": (D,),
    }


def added(state: State, x: Tensor) -> Tensor:
    """What is added to x, in float64 on the CPU."""
    exact = {name: tensor.cpu().double() for name, tensor in state.items()}
    normal = torch.nn.functional.layer_norm(
        x.cpu().double(), x.shape[-1:], exact["norm.weight"], exact["norm.bias"], 1e-5
    )
    wide = normal @ exact["w_in.weight"].T + exact["w_in.bias"]
    return (wide * torch.special.ndtr(wide)) @ exact["w_out.weight"].T + exact["w_out.bias"]


def module(submission: Submission, state: State, dropout: float = 0.0) -> Any:
    """The learner's module with this state."""
    F, D = state["w_in.weight"].shape
    return with_state(submission.ResidualMLP(d_model=D, d_ff=F, dropout=dropout), state)


@pytest.mark.points(9, hint=1)
@pytest.mark.parametrize(
    "B, T, D, F",
    [(2, 3, 4, 16), (3, 5, 6, 10), pytest.param(2, 4, 5, 12, marks=pytest.mark.random)],
)
@pytest.mark.parametrize("offset", [0.0, 2.0])
def test_values(
    submission: Submission, rand: Rand, B: int, T: int, D: int, F: int, offset: float
) -> None:
    """What the MLP makes of the normalised tokens is added to the tokens"""
    state = draw_state(rand, shapes(D, F))
    x = rand(B=B, T=T, D=D) + offset
    expected = x.cpu().double() + added(state, x)
    expect_close(module(submission, state)(x), expected, axes="B T D")


@pytest.mark.points(3, hint=3)
def test_parameters(submission: Submission) -> None:
    """It has a norm, w_in and w_out, and no other parameters"""
    D, F = 6, 20
    mlp = submission.ResidualMLP(d_model=D, d_ff=F)
    expect_parameters(dict(mlp.named_parameters()), shapes(D, F))
    count = sum(parameter.numel() for parameter in mlp.parameters())
    expect_equal(count, 2 * D * F + F + 3 * D, "the number of parameters")


@pytest.mark.points(4, hint=4)
@pytest.mark.parametrize("dropout", [0.0, 0.4, 1.0])
def test_dropout(submission: Submission, rand: Rand, dropout: float) -> None:
    """Dropout falls on what is added, in training mode only"""
    state = draw_state(rand, shapes(6, 20))
    x = rand(B=8, T=30, D=6)
    mlp = module(submission, state, dropout)
    more = added(state, x)
    expect_close(mlp(x), x.cpu().double() + more, axes="B T D", what="the output after eval()")
    mlp.train()
    with torch.no_grad():
        change = (mlp(x) - x).cpu().double()
    gone = change.abs() < 1e-6  # nothing of what is added is so small by chance
    kept = torch.where(gone, 0.0, more / (1 - dropout) if dropout < 1 else 0.0)
    expect_close(change, kept, axes="B T D", what="what is added in training", rtol=1e-3, atol=1e-4)
    share = gone.double().mean().item()
    assert abs(share - dropout) < 0.1, f"{share:.0%} of it is dropped, not {dropout:.0%}"


@pytest.mark.points(1, hint=4)
def test_no_dropout(submission: Submission, rand: Rand) -> None:
    """Without the argument nothing is dropped, in training either"""
    state = draw_state(rand, shapes(4, 10))
    mlp = with_state(submission.ResidualMLP(4, 10), state, evaluate=False)
    x = rand(B=2, T=3, D=4)
    expect_close(mlp(x), x.cpu().double() + added(state, x), axes="B T D")


@pytest.mark.points(3, hint=2)
def test_gradients(submission: Submission, rand: Rand) -> None:
    """Gradients reach every parameter and the input, which is not changed"""
    D, F = 5, 12
    state = draw_state(rand, shapes(D, F))
    mlp = module(submission, state)
    x = rand(B=2, T=3, D=D, grad=True)
    with expect_unchanged(x=x):
        result = mlp(x)
    learnt = trained_parameters(mlp, state)
    expected = x.cpu().double() + added(learnt, x)
    expect_gradients_close(mlp(x), expected, {"x": x, **learnt}, rtol=1e-3, atol=1e-4)
    expect_close(result, expected, axes="B T D")
