"""The hidden checks of attention_weights, the softmax over the keys."""

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

AXES = "B H Tq Tk"
BLOCKED = float("-inf")
FLOAT32_PRECISION = (1e-5, 1e-6)  # a softmax taken in float32 is not a mistake, not even in float64
STEPS = {torch.float32: 0.25, torch.float16: 0.25, torch.bfloat16: 2.0}
SIZES = [(2, 3, 4, 5), (3, 2, 5, 4), (2, 4, 3, 7), (4, 2, 6, 3)]


def reference(scores: Tensor) -> Tensor:
    """Powers of e divided by their sum, in float64, without the blocked scores."""
    scores = scores.cpu().double()
    allowed = scores > BLOCKED
    lowest = torch.finfo(torch.float64).min
    top = torch.where(allowed, scores, lowest).amax(dim=-1, keepdim=True).detach()
    powers = torch.where(allowed, torch.exp(torch.where(allowed, scores, top) - top), 0.0)
    total = powers.sum(dim=-1, keepdim=True)
    return powers / torch.where(total > 0, total, 1.0)


def expect_weights(submission: Submission, scores: Tensor, rtol: float | None = None) -> None:
    """Expect the reference's weights, computed first because an answer may change scores."""
    expected = reference(scores)
    expect_close(submission.attention_weights(scores), expected, axes=AXES, rtol=rtol)


def expect_zeros(weights: Tensor, where: Tensor, what: str) -> None:
    """Expect exactly 0, without a tolerance."""
    inside = torch.where(where.cpu(), weights.detach().cpu(), 0.0)
    expect_close(inside, torch.zeros(where.shape), axes=AXES, rtol=0.0, atol=0.0, what=what)


def partly_blocked(scores: Tensor) -> Tensor:
    """Block keys in every way that leaves a row at least one: none, some, all but one."""
    blocked = scores.detach().clone()
    blocked[0, :, 0, 1:] = BLOCKED  # only the first key is left
    blocked[0, :, 1, :-1] = BLOCKED  # only the last one
    blocked[1, 0, :, 0] = blocked[1, 0, :, -1] = BLOCKED
    blocked[-1, -1, :, 1] = BLOCKED
    blocked[-1, -1, -1, 2:] = BLOCKED
    return blocked.requires_grad_(scores.requires_grad)


def mixed(scores: Tensor) -> Tensor:
    """Rows that are free, partly blocked and fully blocked, side by side in one batch."""
    blocked = partly_blocked(scores).detach()
    blocked[0, 0, 2, :] = BLOCKED
    blocked[1, :, 0, :] = BLOCKED
    blocked[-1, 1, 1, :] = BLOCKED
    return blocked.requires_grad_(scores.requires_grad)


@pytest.mark.points(2, hint=1)
@pytest.mark.parametrize("scale", [1.0, 3.0])
@pytest.mark.parametrize(
    "B, H, Tq, Tk", [(1, 1, 2, 3), *SIZES, pytest.param(3, 4, 5, 6, marks=pytest.mark.random)]
)
def test_values(
    submission: Submission, rand: Rand, B: int, H: int, Tq: int, Tk: int, scale: float
) -> None:
    """The weights are those of the formula"""
    scores = rand(B=B, H=H, Tq=Tq, Tk=Tk, scale=scale)
    expect_weights(submission, scores)


@pytest.mark.points(1, hint=1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("B, H, Tq, Tk", SIZES)
def test_sums(
    submission: Submission, rand: Rand, B: int, H: int, Tq: int, Tk: int, dtype: torch.dtype
) -> None:
    """The weights of each query sum to 1 over its keys"""
    weights = submission.attention_weights(rand(B=B, H=H, Tq=Tq, Tk=Tk, dtype=dtype))
    expect_shape(weights, B=B, H=H, Tq=Tq, Tk=Tk)
    expect_dtype(weights, dtype)
    sums = weights.detach().double().sum(dim=-1).to(dtype)
    expect_close(sums, torch.ones(B, H, Tq), axes="B H Tq", what="the sum over the keys")


@pytest.mark.points(1, hint=1)
@pytest.mark.parametrize(
    "B, H, Tq, Tk", [(1, 1, 1, 1), (1, 3, 2, 4), (2, 1, 3, 5), (2, 3, 1, 4), (3, 2, 4, 1)]
)
def test_edges(submission: Submission, rand: Rand, B: int, H: int, Tq: int, Tk: int) -> None:
    """It works for a single sequence, head, query or key"""
    scores = rand(B=B, H=H, Tq=Tq, Tk=Tk)
    expect_weights(submission, scores)


@pytest.mark.points(1, hint=2)
@pytest.mark.parametrize(
    "offset, dtype",
    [
        *((offset, torch.float32) for offset in (100.0, 1000.0, -1000.0, 10000.0, -10000.0)),
        *((offset, torch.float16) for offset in (300.0, -300.0)),
        *((offset, torch.bfloat16) for offset in (300.0, -300.0)),
    ],
    ids=str,
)
def test_large(submission: Submission, rand: Rand, offset: float, dtype: torch.dtype) -> None:
    """Large scores, positive or negative, give the right weights and no NaN"""
    # Whole steps near the offset are exact in the dtype, so every right answer sees the same
    # differences. An answer may still take the logarithm of the sum in float32, which rounds it to
    # 0.001 near 10000. In half precision it may not: near 300 float16 rounds it to 0.25, bfloat16
    # to 2, and a row would sum to anything from 0.4 to 2.7.
    step = STEPS[dtype]
    scores = (rand(B=2, H=3, Tq=4, Tk=5) / step).round() * step + offset
    rtol = 2e-3 if abs(offset) == 10000.0 else None
    expect_weights(submission, scores.to(dtype), rtol)


@pytest.mark.points(1, hint=2)
@pytest.mark.parametrize("spread", ["one row", "many rows"])
def test_far_apart(submission: Submission, rand: Rand, device: torch.device, spread: str) -> None:
    """Scores of very different sizes give no NaN"""
    scores = (rand(B=2, H=3, Tq=4, Tk=5) * 4).round() / 4
    if spread == "one row":
        scores[:, :, 0, 0] += 2000.0
        scores[:, :, 1, 1:] -= 2000.0
        scores[:, 1, 2, 2] -= 10000.0
    else:
        steps = torch.arange(24, device=device).reshape(2, 3, 4, 1)
        scores = scores + 500.0 * (steps - 12)
    expect_weights(submission, scores, rtol=2e-3)


@pytest.mark.points(1, hint=3)
@pytest.mark.parametrize(
    "low, dtype",
    [*((low, torch.float32) for low in (-1e4, -1e9, -1e20)), (-1e4, torch.float16)],
    ids=str,
)
def test_low_is_not_blocked(
    submission: Submission, rand: Rand, low: float, dtype: torch.dtype
) -> None:
    """A very low score is not treated as blocked"""
    scores = rand(B=2, H=3, Tq=4, Tk=5, dtype=dtype)
    scores[0, 1, 2] = scores[0, 0, 3] = low
    scores[1, :, 0] = low
    scores[1, 2, 3, :3] = low
    scores[0, 2, 1, :3], scores[0, 2, 1, 3:] = low, BLOCKED
    if low == -1e4 and dtype == torch.float32:
        expect_weights(submission, scores, rtol=2e-3)
        return
    # So far from zero float32 cannot hold an answer by way of the logarithm of the sum, right as
    # that is elsewhere; but no right answer takes such a row for a blocked one.
    weights = submission.attention_weights(scores)
    expect_shape(weights, B=2, H=3, Tq=4, Tk=5)
    alive = (scores == low) & (scores.amax(dim=-1, keepdim=True) == low)
    assert bool((weights[alive] > 0.1).all()), (
        f"A row whose scores are all {low:g} is not blocked: its keys share the weight\n"
        f"  expected  more than 0.1 for each key\n"
        f"  got       {weights[alive].min().item():g}"
    )


@pytest.mark.points(1, hint=3)
@pytest.mark.parametrize("B, H, Tq, Tk", [(2, 3, 4, 5), (3, 2, 3, 4)])
def test_blocked_keys(submission: Submission, rand: Rand, B: int, H: int, Tq: int, Tk: int) -> None:
    """A key with the score -inf gets weight 0, and the others share the rest"""
    scores = partly_blocked(rand(B=B, H=H, Tq=Tq, Tk=Tk))
    expected, blocked = reference(scores), scores == BLOCKED
    weights = submission.attention_weights(scores)
    expect_close(weights, expected, axes=AXES)
    expect_zeros(weights, blocked, "the weight of a blocked key")


@pytest.mark.points(2, hint=3)
@pytest.mark.parametrize(
    "case, dtype",
    [
        ("all rows", torch.float32),
        ("one row", torch.float32),
        ("one key", torch.float32),
        ("mixed batch", torch.float32),
        ("mixed batch", torch.float64),
        ("mixed batch", torch.float16),
        ("mixed batch", torch.bfloat16),
    ],
)
def test_blocked_rows(
    submission: Submission, rand: Rand, device: torch.device, case: str, dtype: torch.dtype
) -> None:
    """A fully blocked query gets weight 0 for every key, never NaN"""
    skip_unless_supported(dtype, device)
    scores = rand(B=2, H=3, Tq=4, Tk=5, dtype=dtype)
    if case == "all rows":
        scores[:] = BLOCKED
    elif case == "one row":
        scores[1, 2, 0] = BLOCKED
    elif case == "one key":
        scores = scores[..., :1]
        scores[1, :, 2] = BLOCKED
    else:
        scores = mixed(scores)
    expected = reference(scores)
    row_is_blocked = (scores == BLOCKED).all(dim=-1, keepdim=True).expand_as(scores)
    with expect_unchanged(scores=scores):
        weights = submission.attention_weights(scores)
    rtol, atol = FLOAT32_PRECISION if dtype == torch.float64 else (None, None)
    expect_close(weights, expected, axes=AXES, rtol=rtol, atol=atol)
    expect_zeros(weights, row_is_blocked, "the weight in a fully blocked row")


@pytest.mark.points(1)
@pytest.mark.parametrize("B, H, Tq, Tk", [(2, 3, 4, 5), (3, 2, 5, 4)])
def test_gradients(submission: Submission, rand: Rand, B: int, H: int, Tq: int, Tk: int) -> None:
    """The gradient of the scores is right where nothing is blocked"""
    scores = rand(B=B, H=H, Tq=Tq, Tk=Tk, grad=True)
    actual = submission.attention_weights(scores)
    expect_gradients_close(actual, reference(scores), {"scores": scores})


@pytest.mark.points(1, hint=4)
@pytest.mark.parametrize("case", ["partly blocked", "mixed batch", "all rows"])
def test_blocked_gradients(submission: Submission, rand: Rand, case: str) -> None:
    """Blocked keys and fully blocked rows put no NaN into a gradient"""
    scores = rand(B=3, H=2, Tq=4, Tk=5, grad=True)
    if case == "partly blocked":
        scores = partly_blocked(scores)
    elif case == "mixed batch":
        scores = mixed(scores)
    else:
        scores = torch.full_like(scores, BLOCKED).requires_grad_()
    row_is_open = (scores > BLOCKED).any(dim=-1, keepdim=True).expand_as(scores)
    expect_gradients_close(
        submission.attention_weights(scores),
        reference(scores),
        {"scores": scores},
        axes={"scores": AXES},
        where={"scores": row_is_open},
    )


@pytest.mark.points(1)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str
)
def test_dtype_and_device(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """The weights have the shape, the dtype and the device of the scores"""
    skip_unless_supported(dtype, device)
    scores = partly_blocked(rand(B=2, H=3, Tq=4, Tk=5, dtype=dtype))
    expected = reference(scores)
    weights = submission.attention_weights(scores)
    expect_shape(weights, B=2, H=3, Tq=4, Tk=5)
    expect_dtype(weights, dtype)
    expect_device(weights, device)
    rtol, atol = FLOAT32_PRECISION if dtype == torch.float64 else (None, None)
    expect_close(weights, expected, axes=AXES, rtol=rtol, atol=atol)


@pytest.mark.points(1)
@pytest.mark.parametrize("layout", ["keys first", "part of the keys", "one head repeated"])
def test_calls(submission: Submission, rand: Rand, layout: str) -> None:
    """scores may be a strided view, is not changed, and can be given by name"""
    if layout == "keys first":
        scores = rand(B=2, H=3, Tk=5, Tq=4).transpose(2, 3)
    elif layout == "part of the keys":
        scores = partly_blocked(rand(B=2, H=3, Tq=4, Tk=10))[:, :, :, :5]
    else:
        scores = rand(B=2, H=1, Tq=4, Tk=5).expand(2, 3, 4, 5)
    expected = reference(scores)
    with expect_unchanged(scores=scores):
        weights = submission.attention_weights(scores=scores)
    expect_close(weights, expected, axes=AXES)
