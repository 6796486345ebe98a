"""The hidden checks of RMSNorm."""

from __future__ import annotations

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
    expect_parameters,
    expect_unchanged,
    trained_parameters,
    with_state,
)


def reference(weight: Tensor, x: Tensor, eps: float) -> Tensor:
    """By the length of the vector, in float64 on the CPU."""
    exact = x.cpu().double()
    length = torch.linalg.vector_norm(exact, dim=-1, keepdim=True)
    return exact / (length**2 / x.shape[-1] + eps).sqrt() * weight.cpu().double()


def expect_scaled(submission: Submission, rand: Rand, x: Tensor, eps: float, axes: str) -> None:
    """Expect the reference's numbers."""
    state = draw_state(rand, {"weight": x.shape[-1:]}, x.dtype)
    norm = submission.RMSNorm(x.shape[-1], eps=eps)
    norm.to(x.dtype)
    result = with_state(norm, state)(x)
    expect_dtype(result, x.dtype)
    expect_close(result, reference(state["weight"], x, eps), axes=axes)


@pytest.mark.points(5, hint=1)
@pytest.mark.parametrize(
    "B, T, D", [(2, 3, 4), (3, 5, 7), (1, 2, 16), pytest.param(2, 4, 6, marks=pytest.mark.random)]
)
@pytest.mark.parametrize("offset", [0.0, 3.0])
def test_values(submission: Submission, rand: Rand, B: int, T: int, D: int, offset: float) -> None:
    """Each token is scaled to a root mean square of 1, then by the weight"""
    expect_scaled(submission, rand, rand(B=B, T=T, D=D) + offset, 1e-6, "B T D")


@pytest.mark.points(3, hint=2)
@pytest.mark.parametrize("eps", [0.5, 1e-2])
def test_eps(submission: Submission, rand: Rand, eps: float) -> None:
    """eps is added to the mean square, under the root"""
    x = rand(B=2, T=3, D=5, scale=eps**0.5)
    x[1, 2] = 0.0
    expect_scaled(submission, rand, x, eps, "B T D")


@pytest.mark.points(3, hint=3)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("scale", [1.0, 500.0])
def test_half_precision(
    submission: Submission, rand: Rand, dtype: torch.dtype, scale: float
) -> None:
    """In half precision large inputs give no infinity"""
    x = (rand(B=2, T=3, D=8) * scale).to(dtype)
    expect_scaled(submission, rand, x, 1e-6, "B T D")


@pytest.mark.points(1, hint=1)
def test_any_shape(submission: Submission, rand: Rand) -> None:
    """Whatever stands before the features, a token is scaled by itself"""
    expect_scaled(submission, rand, rand(D=6), 1e-6, "D")
    expect_scaled(submission, rand, rand(B=2, H=3, T=5, D=6), 1e-6, "B H T D")


@pytest.mark.points(1, hint=4)
def test_parameters(submission: Submission) -> None:
    """weight starts at 1, and there is nothing else"""
    norm = submission.RMSNorm(6)
    expect_parameters(dict(norm.named_parameters()), {"weight": (6,)})
    found = trained_parameters(norm, {"weight": (6,)})
    expect_close(found["weight"], torch.ones(6), axes="D", what="weight")


@pytest.mark.points(2, hint=1)
def test_gradients(submission: Submission, rand: Rand, device: torch.device) -> None:
    """Gradients reach the weight and the input, which is not changed"""
    state = draw_state(rand, {"weight": (5,)})
    norm = with_state(submission.RMSNorm(5), state)
    x = rand(B=2, T=3, D=5, grad=True)
    with expect_unchanged(x=x):
        result = norm(x)
    expect_device(result, device)
    learnt = trained_parameters(norm, state)
    expected = reference(learnt["weight"], x, 1e-6)
    expect_gradients_close(norm(x), expected, {"x": x, **learnt})
