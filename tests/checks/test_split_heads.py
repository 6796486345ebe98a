"""The hidden checks of split_heads."""

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
    expect_equal,
    expect_gradients_close,
    expect_raises,
    expect_shape,
    expect_unchanged,
    skip_unless_supported,
)

AXES = "B H T d_k"
SIZES = [(2, 3, 8, 4), (3, 5, 12, 2), (4, 2, 15, 3), (2, 7, 30, 5)]
LAYOUTS = ["tokens first", "features first", "every second feature", "one batch repeated"]


def reference(x: Tensor, num_heads: int) -> Tensor:
    """Slice each head's features out of every token and stack the heads behind the batch."""
    d_k = x.shape[-1] // num_heads
    return torch.stack([x[:, :, h * d_k : (h + 1) * d_k] for h in range(num_heads)], dim=1)


def expect_split(submission: Submission, x: Tensor, num_heads: int) -> None:
    """Expect values that are equal to the last bit, because the stage computes nothing."""
    expected = reference(x, num_heads)
    expect_close(submission.split_heads(x, num_heads), expected, axes=AXES, rtol=0.0, atol=0.0)


@pytest.mark.points(1, hint=6)
@pytest.mark.pays("zeros", "ones", because="only the shape is checked")
@pytest.mark.parametrize("B, T, D, H", SIZES)
def test_shape(submission: Submission, rand: Rand, B: int, T: int, D: int, H: int) -> None:
    """The result has the shape [B, H, T, d_k]"""
    actual = submission.split_heads(rand(B=B, T=T, D=D), H)
    expect_shape(actual, B=B, H=H, T=T, d_k=D // H)


@pytest.mark.points(1, hint=1)
@pytest.mark.parametrize("H", [2, 3])
def test_counted(submission: Submission, device: torch.device, H: int) -> None:
    """The features 0, 1, 2, ... of a token are split into neighbouring pieces"""
    x = torch.arange(6.0, device=device).reshape(1, 1, 6)
    expect_split(submission, x, H)


@pytest.mark.points(2, hint=3)
@pytest.mark.parametrize(
    "B, T, D, H", [*SIZES, pytest.param(3, 5, 12, 4, marks=pytest.mark.random)]
)
def test_values(submission: Submission, rand: Rand, B: int, T: int, D: int, H: int) -> None:
    """Head h holds the features h*d_k up to (h+1)*d_k of every token"""
    for scale in (1.0, 1e-6, 1e6):
        expect_split(submission, rand(B=B, T=T, D=D, scale=scale), H)


@pytest.mark.points(1, hint=6)
@pytest.mark.parametrize(
    "B, T, D, H",
    [(1, 1, 1, 1), (1, 1, 6, 3), (1, 3, 8, 2), (2, 1, 8, 4), (3, 2, 5, 1), (2, 3, 6, 6)],
)
def test_edges(submission: Submission, rand: Rand, B: int, T: int, D: int, H: int) -> None:
    """It works for one sequence, token or head, and for heads of one feature"""
    expect_split(submission, rand(B=B, T=T, D=D), H)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64], ids=str
)
def test_dtype_and_device(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """The result has the dtype and the device of x"""
    skip_unless_supported(dtype, device)
    x = rand(B=2, T=3, D=8, dtype=dtype, scale=100.0)
    if dtype == torch.int64:
        x = x * 1_000_003  # more digits than float32 holds
    expected = reference(x, 4)
    actual = submission.split_heads(x, 4)
    expect_dtype(actual, dtype)
    expect_device(actual, device)
    expect_close(actual, expected, axes=AXES, rtol=0.0, atol=0.0)


@pytest.mark.points(1, hint=4)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout(submission: Submission, rand: Rand, layout: str) -> None:
    """A strided view gives the same result as its copy"""
    if layout == "tokens first":
        x = rand(T=5, B=3, D=8).transpose(0, 1)
    elif layout == "features first":
        x = rand(B=3, D=8, T=5).transpose(1, 2)
    elif layout == "every second feature":
        x = rand(B=3, T=5, D=16)[:, :, ::2]
    else:
        x = rand(B=1, T=5, D=8).expand(3, 5, 8)
    expect_split(submission, x, 4)


@pytest.mark.points(2, hint=5)
@pytest.mark.parametrize("D, H", [(3, 2), (2, 4), (8, 3), (10, 4), (14, 5)])
def test_indivisible(submission: Submission, rand: Rand, D: int, H: int) -> None:
    """It raises ValueError if the heads do not divide the features"""
    x = rand(B=2, T=6, D=D)
    with expect_raises(ValueError, f"D={D} features do not divide into num_heads={H}"):
        submission.split_heads(x, H)
    actual = submission.split_heads(rand(B=2, T=6, D=D * H), H)
    expect_equal(actual.numel(), 2 * 6 * D * H, "the number of values, for heads that do divide D,")


@pytest.mark.points(1)
@pytest.mark.parametrize("B, T, D, H", [(2, 3, 8, 4), (3, 5, 12, 2), (2, 3, 5, 1), (2, 3, 4, 4)])
def test_gradients(submission: Submission, rand: Rand, B: int, T: int, D: int, H: int) -> None:
    """Each output value sends its gradient to its own place in x"""
    x = rand(B=B, T=T, D=D, grad=True)
    expect_gradients_close(submission.split_heads(x, H), reference(x, H), {"x": x})


@pytest.mark.points(1)
def test_second_call(submission: Submission, rand: Rand) -> None:
    """Each call uses its own sizes and num_heads"""
    x = rand(B=2, T=3, D=12)
    for num_heads in (2, 6, 3, 2):
        expect_split(submission, x, num_heads)
    expect_split(submission, rand(B=3, T=4, D=10), 2)
    expect_split(submission, rand(B=2, T=3, D=12), 2)


@pytest.mark.points(1)
def test_unchanged_and_by_name(submission: Submission, rand: Rand, device: torch.device) -> None:
    """It can be called by parameter name, and x is not changed"""
    x = rand(B=2, T=3, D=8)
    expected = reference(x, 4)
    with expect_unchanged(x=x):
        actual = submission.split_heads(num_heads=4, x=x)
    expect_close(actual, expected, axes=AXES, rtol=0.0, atol=0.0)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        skip_unless_supported(dtype, device)
        tokens_first = rand(T=3, B=2, D=8, dtype=dtype)
        for x in (tokens_first, tokens_first.transpose(0, 1)):
            with expect_unchanged(x=x):
                submission.split_heads(x, 4)
