"""The hidden checks of gelu."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from grader.checking import (
    Rand,
    Submission,
    expect_close,
    expect_device,
    expect_dtype,
    expect_gradients_close,
    expect_unchanged,
)


def reference(x: Tensor) -> Tensor:
    """By the distribution itself, in float64 on the CPU."""
    exact = x.cpu().double()
    return exact * torch.special.ndtr(exact)


@pytest.mark.points(6, hint=2)
@pytest.mark.parametrize("B, T", [(2, 3), (4, 5), pytest.param(3, 6, marks=pytest.mark.random)])
@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_values(submission: Submission, rand: Rand, B: int, T: int, scale: float) -> None:
    """Each number is multiplied by the share of a normal distribution below it"""
    x = rand(B=B, T=T, scale=scale)
    expect_close(submission.gelu(x), reference(x), axes="B T")


@pytest.mark.points(3, hint=3)
def test_exact(submission: Submission, device: torch.device) -> None:
    """It is the exact function, to more digits than the one with tanh has"""
    x = torch.linspace(-4, 4, 33, device=device)
    # The approximation is off by up to 0.0005; float32 itself by less than 0.000001.
    expect_close(submission.gelu(x), reference(x), axes="numbers", rtol=0.0, atol=2e-6)


@pytest.mark.points(2, hint=1)
@pytest.mark.parametrize("size", [20.0, 1e4, 1e30])
def test_large(submission: Submission, device: torch.device, size: float) -> None:
    """Large numbers stay or become 0, without NaN"""
    x = torch.tensor([-size, 0.0, 1.0, size], device=device)
    expect_close(submission.gelu(x), reference(x), axes="numbers")


@pytest.mark.points(2, hint=2)
def test_gradients(submission: Submission, rand: Rand) -> None:
    """Gradients reach the input"""
    x = rand(B=3, T=4, grad=True)
    expect_gradients_close(submission.gelu(x), reference(x), {"x": x})


@pytest.mark.points(2, hint=2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_input_kept(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """The input is not changed; the result has its dtype and device"""
    x = rand(B=2, T=3, D=4, dtype=dtype)
    with expect_unchanged(x=x):
        result = submission.gelu(x)
    expect_dtype(result, dtype)
    expect_device(result, device)
    expect_close(result, reference(x), axes="B T D")
