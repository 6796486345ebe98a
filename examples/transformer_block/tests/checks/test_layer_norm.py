"""The hidden checks of LayerNorm."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from grader.checking import (
    Rand,
    Submission,
    draw_state,
    expect_close,
    expect_device,
    expect_dtype,
    expect_gradients_close,
    expect_no_constant,
    expect_parameters,
    expect_unchanged,
    trained_parameters,
    with_state,
)

State = Mapping[str, Tensor]


def reference(state: State, x: Tensor, eps: float) -> Tensor:
    """By torch itself, in float64 on the CPU."""
    exact = {name: tensor.cpu().double() for name, tensor in state.items()}
    return torch.nn.functional.layer_norm(
        x.cpu().double(), x.shape[-1:], exact["weight"], exact["bias"], eps
    )


def expect_normal(submission: Submission, rand: Rand, x: Tensor, eps: float, axes: str) -> None:
    """Expect the reference's numbers, with a weight and a bias that say which is which."""
    state = draw_state(rand, {"weight": x.shape[-1:], "bias": x.shape[-1:]})
    norm = with_state(submission.LayerNorm(x.shape[-1], eps=eps), state)
    expect_close(norm(x), reference(state, x, eps), axes=axes)


@pytest.mark.points(7, hint=2)
@pytest.mark.parametrize(
    "B, T, D", [(2, 3, 4), (3, 5, 7), (1, 2, 16), pytest.param(2, 4, 6, marks=pytest.mark.random)]
)
@pytest.mark.parametrize("offset, scale", [(0.0, 1.0), (3.0, 2.0)])
def test_values(
    submission: Submission, rand: Rand, B: int, T: int, D: int, offset: float, scale: float
) -> None:
    """Each token is normalised, then scaled and shifted"""
    x = rand(B=B, T=T, D=D, scale=scale) + offset
    expect_normal(submission, rand, x, 1e-5, "B T D")


@pytest.mark.points(4, hint=3)
@pytest.mark.parametrize("eps", [0.5, 1e-3])
def test_eps(submission: Submission, rand: Rand, eps: float) -> None:
    """eps is added to the variance, under the root"""
    expect_normal(submission, rand, rand(B=2, T=3, D=5, scale=eps**0.5), eps, "B T D")


@pytest.mark.points(3, hint=3)
@pytest.mark.parametrize("value", [0.0, 7.0])
def test_equal_features(submission: Submission, rand: Rand, value: float) -> None:
    """A token whose features are all equal becomes the bias, without NaN"""
    x = rand(B=2, T=3, D=4)
    x[0, 1] = value
    expect_normal(submission, rand, x, 1e-5, "B T D")


@pytest.mark.points(3, hint=1)
def test_any_shape(submission: Submission, rand: Rand) -> None:
    """Whatever stands before the features, a token is normalised by itself"""
    expect_normal(submission, rand, rand(D=6), 1e-5, "D")
    expect_normal(submission, rand, rand(T=4, D=6), 1e-5, "T D")
    expect_normal(submission, rand, rand(B=2, H=3, T=5, D=6), 1e-5, "B H T D")


@pytest.mark.points(3, hint=4)
def test_parameters(submission: Submission) -> None:
    """weight starts at 1, bias at 0, and there is nothing else"""
    norm = submission.LayerNorm(6)
    shapes = {"weight": (6,), "bias": (6,)}
    expect_parameters(dict(norm.named_parameters()), shapes)
    found = trained_parameters(norm, shapes)
    expect_close(found["weight"], torch.ones(6), axes="D", what="weight")
    expect_close(found["bias"], torch.zeros(6), axes="D", what="bias")


@pytest.mark.points(3, hint=2)
def test_gradients(submission: Submission, rand: Rand) -> None:
    """Gradients reach the input, the weight and the bias"""
    state = draw_state(rand, {"weight": (5,), "bias": (5,)})
    norm = with_state(submission.LayerNorm(5), state)
    x = rand(B=2, T=3, D=5, grad=True)
    learnt = trained_parameters(norm, state)
    expect_gradients_close(norm(x), reference(learnt, x, 1e-5), {"x": x, **learnt})


@pytest.mark.points(2, hint=2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_input_kept(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """The input is not changed; the result has its dtype and device"""
    if device.type == "mps" and dtype == torch.float64:
        pytest.skip("this GPU has no float64")
    norm = submission.LayerNorm(4)
    norm.to(dtype)
    if device.type != "cpu":
        norm.to(device)
    x = rand(B=2, T=3, D=4, dtype=dtype)
    with expect_unchanged(x=x):
        result = norm(x)
    expect_dtype(result, dtype)
    expect_device(result, device)
    expect_no_constant(result, x=x)
