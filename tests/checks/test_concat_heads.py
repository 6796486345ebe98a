"""The hidden checks of concat_heads."""

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
    expect_shape,
    expect_unchanged,
    skip_unless_supported,
)

SIZES = [(2, 4, 3, 2), (3, 2, 5, 6), (4, 3, 2, 5), (2, 5, 7, 6)]
LAYOUTS = ["heads split off", "tokens first", "every second feature", "one head repeated"]


def reference(x: Tensor) -> Tensor:
    """Lay the heads' features side by side, head after head."""
    return torch.cat([x[:, head] for head in range(x.shape[1])], dim=-1)


def expect_concatenated(submission: Submission, x: Tensor) -> None:
    """Expect values that are equal to the last bit, because the stage computes nothing."""
    expected = reference(x)
    expect_close(submission.concat_heads(x), expected, axes="B T D", rtol=0.0, atol=0.0)


@pytest.mark.points(1, hint=4)
@pytest.mark.pays("zeros", "ones", because="only the shape is checked")
@pytest.mark.parametrize("B, H, T, d_k", SIZES)
def test_shape(submission: Submission, rand: Rand, B: int, H: int, T: int, d_k: int) -> None:
    """The result has the shape [B, T, D] with D = H * d_k"""
    expect_shape(submission.concat_heads(rand(B=B, H=H, T=T, d_k=d_k)), B=B, T=T, D=H * d_k)


@pytest.mark.points(1, hint=1)
def test_counted(submission: Submission, device: torch.device) -> None:
    """Two tokens get their own features back, side by side"""
    x = torch.tensor(
        [[[[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]], [[3.0, 4.0, 5.0], [13.0, 14.0, 15.0]]]]
    )
    expect_concatenated(submission, x.to(device))


@pytest.mark.points(2, hint=2)
@pytest.mark.parametrize(
    "B, H, T, d_k", [*SIZES, pytest.param(3, 4, 5, 2, marks=pytest.mark.random)]
)
def test_values(submission: Submission, rand: Rand, B: int, H: int, T: int, d_k: int) -> None:
    """Each token gets the features of its heads, head after head"""
    for scale in (1.0, 1e-6, 1e6):
        expect_concatenated(submission, rand(B=B, H=H, T=T, d_k=d_k, scale=scale))


@pytest.mark.points(1, hint=1)
@pytest.mark.parametrize("B, T, D, H", [(2, 3, 8, 4), (3, 5, 12, 2), (2, 4, 6, 6)])
def test_inverse(submission: Submission, rand: Rand, B: int, T: int, D: int, H: int) -> None:
    """Joining split heads gives back the original numbers"""
    x = rand(B=B, T=T, D=D)
    heads = torch.stack(torch.chunk(x, H, dim=-1), dim=1)  # (B, H, T, d_k)
    expect_close(submission.concat_heads(heads), x, axes="B T D", rtol=0.0, atol=0.0)


@pytest.mark.points(1, hint=4)
@pytest.mark.parametrize(
    "B, H, T, d_k", [(1, 1, 1, 1), (1, 3, 2, 2), (2, 1, 3, 5), (2, 4, 1, 3), (3, 6, 2, 1)]
)
def test_edges(submission: Submission, rand: Rand, B: int, H: int, T: int, d_k: int) -> None:
    """It works for one sequence, head or token, and for heads of one feature"""
    expect_concatenated(submission, rand(B=B, H=H, T=T, d_k=d_k))


@pytest.mark.points(1)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64], ids=str
)
def test_dtype_and_device(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """The result has the dtype and the device of x"""
    skip_unless_supported(dtype, device)
    x = rand(B=2, H=4, T=3, d_k=2, dtype=dtype, scale=100.0)
    if dtype == torch.int64:
        x = x * 1_000_003  # more digits than float32 holds
    expected = reference(x)
    actual = submission.concat_heads(x)
    expect_dtype(actual, dtype)
    expect_device(actual, device)
    expect_close(actual, expected, axes="B T D", rtol=0.0, atol=0.0)


@pytest.mark.points(1, hint=3)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout(submission: Submission, rand: Rand, layout: str) -> None:
    """A strided view gives the same result as its copy"""
    if layout == "heads split off":
        x = rand(B=3, T=5, H=4, d_k=2).transpose(1, 2)
    elif layout == "tokens first":
        x = rand(T=5, B=3, H=4, d_k=2).permute(1, 2, 0, 3)
    elif layout == "every second feature":
        x = rand(B=3, H=4, T=5, d_k=4)[:, :, :, ::2]
    else:
        x = rand(B=3, H=1, T=5, d_k=2).expand(3, 4, 5, 2)
    expect_concatenated(submission, x)


@pytest.mark.points(1)
@pytest.mark.parametrize("B, H, T, d_k", [(2, 4, 3, 2), (3, 2, 5, 6), (2, 1, 3, 5)])
def test_gradients(submission: Submission, rand: Rand, B: int, H: int, T: int, d_k: int) -> None:
    """Each output value sends its gradient to its own place in x"""
    x = rand(B=B, H=H, T=T, d_k=d_k, grad=True)
    expect_gradients_close(submission.concat_heads(x), reference(x), {"x": x})


@pytest.mark.points(1)
def test_calls(submission: Submission, rand: Rand, device: torch.device) -> None:
    """Calls by name and with other sizes work, and x is not changed"""
    whole, split_off = rand(B=2, H=3, T=4, d_k=2), rand(B=3, T=5, H=2, d_k=4).transpose(1, 2)
    for x in (whole, split_off) * 2:
        expected = reference(x)
        with expect_unchanged(x=x):
            actual = submission.concat_heads(x=x)
        expect_close(actual, expected, axes="B T D", rtol=0.0, atol=0.0)
    for dtype in (torch.bfloat16, torch.float64):
        skip_unless_supported(dtype, device)
        x = whole.to(dtype)
        with expect_unchanged(x=x):
            submission.concat_heads(x)
