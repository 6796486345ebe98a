"""The hidden checks of scaled_scores."""

from __future__ import annotations

import math

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

AXES = "B H Tq Tk"
SIZES = [(2, 3, 4, 5, 7), (3, 2, 6, 4, 5), (2, 4, 3, 3, 8), (3, 2, 5, 7, 16)]
LAYOUTS = [
    "heads split off",
    "k stored transposed",
    "every second feature",
    "k shared by the heads",
]


def reference(q: Tensor, k: Tensor) -> Tensor:
    """Multiply each query with each key feature by feature, in float64, and add up."""
    q, k = q.cpu().double(), k.cpu().double()
    products = q[:, :, :, None, :] * k[:, :, None, :, :]  # (B, H, Tq, Tk, d_k)
    return products.sum(dim=-1) / math.sqrt(q.shape[-1])


def expect_scores(submission: Submission, q: Tensor, k: Tensor) -> None:
    """Expect the reference's scores, computed first because an answer may change q and k."""
    expected = reference(q, k)
    expect_close(submission.scaled_scores(q, k), expected, axes=AXES)


def ladder(x: Tensor) -> Tensor:
    """The sizes of x, from a hundredth at the first token to ten thousand times at the last."""
    steps = torch.logspace(-2, 4, x.shape[2], device=x.device)
    return x.abs() * steps[:, None]


@pytest.mark.points(1, hint=3)
@pytest.mark.pays("zeros", "ones", because="only the shape is checked")
@pytest.mark.parametrize("B, H, Tq, Tk, d_k", SIZES)
def test_shape(
    submission: Submission, rand: Rand, B: int, H: int, Tq: int, Tk: int, d_k: int
) -> None:
    """The result has the shape [B, H, Tq, Tk], a score for each query and key"""
    q, k = rand(B=B, H=H, Tq=Tq, d_k=d_k), rand(B=B, H=H, Tk=Tk, d_k=d_k)
    expect_shape(submission.scaled_scores(q, k), B=B, H=H, Tq=Tq, Tk=Tk)


@pytest.mark.points(2, hint=1)
@pytest.mark.parametrize(
    "B, H, Tq, Tk, d_k",
    [(1, 1, 2, 3, 2), *SIZES, pytest.param(4, 3, 5, 6, 10, marks=pytest.mark.random)],
)
def test_values(
    submission: Submission, rand: Rand, B: int, H: int, Tq: int, Tk: int, d_k: int
) -> None:
    """Row i, column j holds the scaled dot product of query i and key j"""
    q, k = rand(B=B, H=H, Tq=Tq, d_k=d_k), rand(B=B, H=H, Tk=Tk, d_k=d_k)
    expect_scores(submission, q, k)
    # Scores of all sizes and both signs. The products in one score have one sign: no right
    # answer loses digits, whichever way it scales.
    for sign in (1.0, -1.0):
        expect_scores(submission, sign * ladder(q), k.abs())
    expect_scores(submission, q.abs(), -ladder(k))


@pytest.mark.points(2, hint=2)
@pytest.mark.parametrize("d_k", [1, 4, 9, 32, 100])
def test_scale(submission: Submission, device: torch.device, d_k: int) -> None:
    """The scale is right for any size of head"""
    q, k = torch.ones(2, 3, 5, d_k, device=device), torch.ones(2, 3, 2, d_k, device=device)
    expected = torch.full((2, 3, 5, 2), d_k / math.sqrt(d_k))
    expect_close(submission.scaled_scores(q, k), expected, axes=AXES)
    expect_close(submission.scaled_scores(-64 * q, 64 * k), -4096 * expected, axes=AXES)


@pytest.mark.points(1, hint=4)
def test_batches_and_heads_apart(submission: Submission, rand: Rand) -> None:
    """Each score depends on its own batch and head only"""
    q, k = rand(B=3, H=2, Tq=4, d_k=5), rand(B=3, H=2, Tk=6, d_k=5)
    before = submission.scaled_scores(q.clone(), k.clone())
    expect_shape(before, B=3, H=2, Tq=4, Tk=6)
    for batch, head in ((0, 1), (2, 0)):
        other = k.clone()
        other[batch, head] = rand(Tk=6, d_k=5)
        after = submission.scaled_scores(q.clone(), other)
        expect_shape(after, B=3, H=2, Tq=4, Tk=6)
        expected = before.detach().clone()
        expected[batch, head] = after.detach()[batch, head]
        expect_close(after, expected, axes=AXES)
        assert not torch.equal(after[batch, head], before[batch, head]), (
            "Other keys do not change the scores of their own head"
        )


@pytest.mark.points(1, hint=5)
@pytest.mark.parametrize(
    "B, H, Tq, Tk, d_k",
    [(1, 1, 1, 1, 1), (1, 3, 2, 4, 5), (2, 1, 3, 5, 4), (2, 3, 1, 6, 4), (3, 2, 5, 1, 4)],
)
def test_edges(
    submission: Submission, rand: Rand, B: int, H: int, Tq: int, Tk: int, d_k: int
) -> None:
    """It works for a single sequence, head, query or key"""
    q, k = rand(B=B, H=H, Tq=Tq, d_k=d_k), rand(B=B, H=H, Tk=Tk, d_k=d_k)
    expect_scores(submission, q, k)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str
)
def test_dtype_and_device(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """The result has the dtype and the device of q and k"""
    skip_unless_supported(dtype, device)
    q = rand(B=2, H=3, Tq=4, d_k=5, dtype=dtype, scale=0.5)
    k = rand(B=2, H=3, Tk=6, d_k=5, dtype=dtype, scale=0.5)
    expected = reference(q, k)
    actual = submission.scaled_scores(q, k)
    expect_dtype(actual, dtype)
    expect_device(actual, device)
    # A root or a product taken in float32 is not a mistake, not even where q and k are float64.
    rtol, atol = (1e-5, 1e-5) if dtype == torch.float64 else (None, None)
    expect_close(actual, expected, axes=AXES, rtol=rtol, atol=atol)


@pytest.mark.points(1)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout(submission: Submission, rand: Rand, layout: str) -> None:
    """q and k may be strided views"""
    if layout == "heads split off":
        q = rand(B=2, Tq=4, H=3, d_k=5).transpose(1, 2)
        k = rand(B=2, Tk=6, H=3, d_k=5).transpose(1, 2)
    elif layout == "k stored transposed":
        q = rand(B=2, H=3, Tq=4, d_k=5)
        k = rand(B=2, H=3, d_k=5, Tk=6).transpose(2, 3)
    elif layout == "every second feature":
        q = rand(B=2, H=3, Tq=4, d_k=10)[:, :, :, ::2]
        k = rand(B=2, H=3, Tk=6, d_k=10)[:, :, :, ::2]
    else:
        q = rand(B=2, H=3, Tq=4, d_k=5)
        k = rand(B=2, H=1, Tk=6, d_k=5).expand(2, 3, 6, 5)
    expect_scores(submission, q, k)


@pytest.mark.points(1)
@pytest.mark.parametrize("B, H, Tq, Tk, d_k", [(2, 3, 4, 5, 7), (3, 2, 6, 4, 5)])
def test_gradients(
    submission: Submission, rand: Rand, B: int, H: int, Tq: int, Tk: int, d_k: int
) -> None:
    """Gradients reach both q and k"""
    q = rand(B=B, H=H, Tq=Tq, d_k=d_k, grad=True)
    k = rand(B=B, H=H, Tk=Tk, d_k=d_k, grad=True)
    expect_gradients_close(submission.scaled_scores(q, k), reference(q, k), {"q": q, "k": k})


@pytest.mark.points(1)
def test_self_attention(submission: Submission, rand: Rand) -> None:
    """The same tensor as q and k gets the gradients of both"""
    x = rand(B=2, H=3, T=4, d_k=5, grad=True)
    actual, expected = submission.scaled_scores(x, x), reference(x, x)
    expect_close(actual, expected, axes="B H T T")
    expect_gradients_close(actual, expected, {"x": x})


@pytest.mark.points(1)
def test_calls(submission: Submission, rand: Rand, device: torch.device) -> None:
    """Calls by name and with other sizes work, and q and k are not changed"""
    for B, H, Tq, Tk, d_k in ((2, 3, 4, 5, 6), (3, 2, 5, 2, 9), (2, 3, 4, 5, 6)):
        q, k = rand(B=B, H=H, Tq=Tq, d_k=d_k), rand(B=B, H=H, Tk=Tk, d_k=d_k)
        expected = reference(q, k)
        with expect_unchanged(q=q, k=k):
            actual = submission.scaled_scores(k=k, q=q)
        expect_close(actual, expected, axes=AXES)
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        skip_unless_supported(dtype, device)
        q, k = rand(B=2, H=3, Tq=4, d_k=5, dtype=dtype), rand(B=2, H=3, d_k=5, Tk=6, dtype=dtype)
        for queries, keys in ((q, k.mT), (q.mT.contiguous().mT, k.mT.contiguous())):
            with expect_unchanged(q=queries, k=keys):
                submission.scaled_scores(queries, keys)
