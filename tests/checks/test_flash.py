"""Hidden checks of flash: values of every kind of mask, and memory that grows with the tokens.

`reference` computes the attention of one query at a time in float64 on the CPU. The memory is what
the worker counts of the tensors that the function makes; where one kernel does everything, that is
little more than the output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from grader.checking import (
    CheckFailed,
    are_close,
    expect_close,
    expect_device,
    expect_dtype,
    expect_gradients_close,
    expect_shape,
    expect_unchanged,
    is_between,
    skip_unless_supported,
)

AXES = "B H Tq d_k"
B, H, TQ, TK, DK = 2, 3, 5, 7, 4
# Where memory is measured, every operation takes long: blocks of 16 tokens must be done in time,
# and those of 2048 be small beside the matrix.
LONG = [(256, 512), (2048, 4096)]

Rand = Callable[..., Tensor]


def reference(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, causal: bool = False
) -> Tensor:
    """The output, one query at a time, in float64 on the CPU."""
    q, k, v = (x.cpu().double() for x in (q, k, v))
    allowed = torch.ones((), dtype=torch.bool) if mask is None else (mask != 0).cpu()
    allowed = allowed.expand(*q.shape[:3], k.shape[2])
    rows = []
    for i in range(q.shape[2]):
        scores = (q[:, :, i : i + 1] * k).sum(-1) / q.shape[-1] ** 0.5  # B H Tk
        powers = (scores - scores.detach().amax(-1, keepdim=True)).exp() * allowed[:, :, i]
        if causal:
            powers = powers * (torch.arange(k.shape[2]) <= i)
        total = powers.sum(-1, keepdim=True)
        weights = powers / (total + (total == 0))  # a row of zeros stays one
        rows.append((weights.unsqueeze(-1) * v).sum(2))
    return torch.stack(rows, dim=2)


def inputs(
    rand: Rand,
    B: int = B,
    H: int = H,
    Tq: int = TQ,
    Tk: int = TK,
    d_k: int = DK,
    **options: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values."""
    return (
        rand(B=B, H=H, Tq=Tq, d_k=d_k, **options),
        rand(B=B, H=H, Tk=Tk, d_k=d_k, **options),
        rand(B=B, H=H, Tk=Tk, d_k=d_k, **options),
    )


def scattered(rand: Rand, seed: int, *shape: int) -> Tensor:
    """A mask at random, with an allowed and a blocked key in every row."""
    mask = rand(**{f"axis_{place}": size for place, size in enumerate(shape)}) > 0
    mask[..., seed % mask.shape[-1]] = True
    mask[..., (seed + 1) % mask.shape[-1]] = False
    return mask


def some_rows_blocked(rand: Rand, Tq: int = TQ, Tk: int = TK) -> Tensor:
    """[B, 1, Tq, Tk]: one query of the first sequence, and all of the last, see nothing."""
    mask = rand(B=B, one=1, Tq=Tq, Tk=Tk) > 0
    mask[..., 0] = True
    mask[0, :, 2] = False
    mask[-1] = False
    return mask


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("B", "H", "Tq", "Tk", "d_k"), [(1, 1, 1, 1, 1), (2, 3, 5, 7, 4), (3, 2, 6, 4, 5)]
)
def test_shape(
    submission: Any, rand: Rand, device: torch.device, B: int, H: int, Tq: int, Tk: int, d_k: int
) -> None:
    """Returns [B, H, Tq, d_k], in the dtype and on the device of q"""
    out = submission.flash_attention(*inputs(rand, B, H, Tq, Tk, d_k))
    expect_shape(out, B=B, H=H, Tq=Tq, d_k=d_k)
    expect_dtype(out, torch.float32)
    expect_device(out, device)


@pytest.mark.points(2)
@pytest.mark.parametrize(
    ("B", "H", "Tq", "Tk", "d_k"),
    [(1, 1, 2, 3, 2), (2, 3, 5, 7, 4), (3, 2, 6, 4, 8), (2, 4, 1, 5, 3), (2, 2, 3, 300, 4)],
)
def test_values(submission: Any, rand: Rand, B: int, H: int, Tq: int, Tk: int, d_k: int) -> None:
    """Each query gets the values weighted by the softmax of its scores"""
    q, k, v = inputs(rand, B, H, Tq, Tk, d_k)
    expect_close(submission.flash_attention(q, k, v), reference(q, k, v), axes=AXES)


@pytest.mark.points(1)
@pytest.mark.parametrize("shift", [0.0, 30.0, -30.0])
def test_large(submission: Any, rand: Rand, shift: float) -> None:
    """Scores of some hundreds, positive or negative, give no NaN"""
    # Where keys are taken in blocks, the first may tell nothing of the last.
    for Tk, late in ((9, 0), (700, 640)):
        q, k, v = inputs(rand, Tk=Tk)
        q = (q * 8).round() / 2
        k = (k * 8).round() / 2  # halves: every right answer has the same scores, exactly
        k[:, :, late:] += shift
        expect_close(submission.flash_attention(q, k, v), reference(q, k, v), axes=AXES)


@pytest.mark.points(2)
@pytest.mark.parametrize(
    ("axes", "dtype"),
    [
        ("Tq Tk", torch.bool),
        ("B 1 1 Tk", torch.bool),
        ("B 1 Tq Tk", torch.float32),
        ("1 H 1 Tk", torch.int64),
        ("B H Tq Tk", torch.bool),
        ("Tq Tk", torch.uint8),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("B", "Tq", "scale"),
    [(B, TQ, 1.0), (B, 1, 1.0), (TQ, TQ, 1.0), (B, TQ, 6.0)],
    ids=["", "one query", "as many queries as sequences", "large scores"],
)
def test_masks(
    submission: Any,
    rand: Rand,
    seed: int,
    axes: str,
    dtype: torch.dtype,
    B: int,
    Tq: int,
    scale: float,
) -> None:
    """Masks of every shape, bool or zeros and ones, hide what they block"""
    sizes = {"B": B, "H": H, "Tq": Tq, "Tk": TK, "1": 1}
    q, k, v = inputs(rand, B, Tq=Tq, scale=scale)
    mask = scattered(rand, seed, *(sizes[axis] for axis in axes.split())).to(dtype)
    expected = reference(q, k, v, mask)
    with expect_unchanged(q=q, k=k, v=v, mask=mask):
        out = submission.flash_attention(q, k, v, mask)
    # A score of some hundred has an error of some 1e-4 in float32, and so have its weights.
    tolerance = 5e-3 if scale > 1 else None
    expect_close(out, expected, axes=AXES, rtol=tolerance, atol=tolerance)


@pytest.mark.points(1)
@pytest.mark.parametrize("T", [3, 5, 1, 700])
def test_causal(submission: Any, rand: Rand, T: int) -> None:
    """With causal=True no token sees a later one"""
    q, k, v = inputs(rand, 1, 2, T, T)
    out = submission.flash_attention(q, k, v, causal=True)
    expect_close(out, reference(q, k, v, causal=True), axes=AXES)


@pytest.mark.points(2)
@pytest.mark.parametrize("axes", ["B 1 1 T", "T T", "B H T T"])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32], ids=str)
def test_both(submission: Any, rand: Rand, seed: int, axes: str, dtype: torch.dtype) -> None:
    """A mask and causal=True together block what either of them blocks"""
    T = TQ
    sizes = {"B": B, "H": H, "T": T, "1": 1}
    q, k, v = inputs(rand, Tq=T, Tk=T)
    mask = scattered(rand, seed, *(sizes[axis] for axis in axes.split())).to(dtype)
    expected = reference(q, k, v, mask, causal=True)
    with expect_unchanged(mask=mask):
        out = submission.flash_attention(q, k, v, mask=mask, causal=True)
    expect_close(out, expected, axes=AXES)


@pytest.mark.points(1)
@pytest.mark.parametrize("causal", [False, True])
def test_blocked_rows(submission: Any, rand: Rand, causal: bool) -> None:
    """Where nothing may be seen, the result is zero"""
    q, k, v = inputs(rand, Tk=TQ if causal else TK)
    mask = some_rows_blocked(rand, Tk=k.shape[2])
    if causal:
        mask[0, 0, 0, 0] = False  # the first query could have seen itself alone
    expected = reference(q, k, v, mask, causal)
    with expect_unchanged(mask=mask):
        out = submission.flash_attention(q, k, v, mask, causal)
    expect_close(out, expected, axes=AXES)
    nothing = torch.zeros_like(mask)
    out = submission.flash_attention(q, k, v, nothing, causal)
    expect_close(out, reference(q, k, v, nothing, causal), axes=AXES)


@pytest.mark.points(1)
@pytest.mark.parametrize("kind", ["plain", "mask", "causal", "both"])
def test_gradients(submission: Any, rand: Rand, seed: int, kind: str) -> None:
    """Gradients flow back into q, k and v"""
    T = TK if kind in ("plain", "mask") else TQ
    q, k, v = inputs(rand, Tk=T, grad=True)
    mask = scattered(rand, seed, B, 1, TQ, T) if kind in ("mask", "both") else None
    if kind == "both" and mask is not None:
        mask[..., 0] = True
    causal = kind in ("causal", "both")
    expected = reference(q, k, v, mask, causal)
    out = submission.flash_attention(q, k, v, mask, causal)
    # Sums of many terms, rounded accordingly in float32.
    leaves = {"q": q, "k": k, "v": v}
    expect_gradients_close(out, expected, leaves, rtol=1e-3, atol=1e-4)


@pytest.mark.points(1)
def test_blocked_gradients(submission: Any, rand: Rand) -> None:
    """Queries that see nothing leave no NaN in any gradient"""
    q, k, v = inputs(rand, grad=True)
    mask = some_rows_blocked(rand)
    expected = reference(q, k, v, mask)
    out = submission.flash_attention(q, k, v, mask)
    leaves = {"q": q, "k": k, "v": v}
    expect_gradients_close(out, expected, leaves, rtol=1e-3, atol=1e-4)


@pytest.mark.points(1)
@pytest.mark.parametrize(
    ("p", "kind"), [(0.5, "plain"), (0.2, "plain"), (0.2, "causal"), (0.5, "both")]
)
def test_dropout(submission: Any, rand: Rand, device: torch.device, p: float, kind: str) -> None:
    """dropout_p drops single weights, those kept are divided by 1 - dropout_p"""
    # A value is 1 in two of its features, so a weight can be read off the output twice.
    B, H, Tk = 5, 6, 5
    causal = kind in ("causal", "both")
    Tq = Tk if causal else 30
    q, k, _ = inputs(rand, B, H, Tq, Tk, 2 * Tk, scale=0.5)
    v = torch.eye(Tk, device=device).repeat(B, H, 1, 2)
    # The kernels that drop weights are others, and do not take the same arguments together.
    mask = torch.arange(Tk, device=device) != 2 if kind == "both" else None
    mask = mask if mask is None else mask.reshape(1, 1, 1, Tk)
    weights = reference(q, k, v, mask, causal)[..., :Tk]
    with expect_unchanged(q=q, k=k, v=v, **({} if mask is None else {"mask": mask})):
        out = submission.flash_attention(q, k, v, mask, causal, dropout_p=p)
    expect_shape(out, B=B, H=H, Tq=Tq, d_k=2 * Tk)
    seen, again = out.cpu().double().split(Tk, dim=-1)
    there = weights > 0
    off = seen.abs() < 1e-6
    right = are_close(seen, weights / (1 - p), rtol=1e-3, atol=1e-6, where=~off)
    share = off[there].double().mean().item()
    leeway = 8 * (p * (1 - p) / int(there.sum())) ** 0.5  # eight standard deviations
    if not right.all() or not is_between(share, p - leeway, p + leeway):
        raise CheckFailed(
            f"dropout_p={p} does something else to the weights\n"
            f"  expected  about {p:.0%} of them 0, the others divided by {1 - p:g}\n"
            f"  got       {share:.0%} of them 0, {(~right)[there].double().mean().item():.0%} wrong"
        )
    if not are_close(seen, again, rtol=1e-3, atol=1e-6).all():
        raise CheckFailed(
            "Dropout falls on something else than the weights\n"
            "  expected  a weight that is dropped for all features of its value\n"
            "  got       a weight that is dropped for some features and kept for others"
        )
    for axis, name in enumerate(("sequences", "heads", "queries", "keys")):
        if bool((off == off.narrow(axis, 0, 1)).all()):
            raise CheckFailed(
                f"Dropout treats all {name} alike\n"
                f"  expected  a draw for each weight\n"
                f"  got       the same draw for all {name}"
            )


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_dtypes(
    submission: Any, rand: Rand, seed: int, device: torch.device, dtype: torch.dtype
) -> None:
    """It answers in the dtype of its inputs, masks and all"""
    skip_unless_supported(dtype, device)
    q, k, v = inputs(rand, Tk=TQ, dtype=dtype)
    # What is asked is the dtype. Computed in half precision throughout, right answers are off by
    # up to 0.002 (float16) and 0.023 (bfloat16); a softmax in float32 is no mistake for float64.
    tolerance = {torch.float64: 1e-5, torch.float16: 0.01, torch.bfloat16: 0.08}[dtype]
    for mask in (None, scattered(rand, seed, B, 1, TQ, TQ)):
        for causal in (False, True):
            expected = reference(q, k, v, mask, causal)
            with expect_unchanged(q=q, k=k, v=v):
                out = submission.flash_attention(q, k, v, mask=mask, causal=causal)
            expect_dtype(out, dtype)
            expect_close(out, expected, axes=AXES, rtol=tolerance, atol=tolerance)


@pytest.mark.points(1)
@pytest.mark.parametrize("layout", ["heads after tokens", "features first", "one head for all"])
def test_calls(submission: Any, rand: Rand, layout: str) -> None:
    """Any memory layout and calls by name work and leave the inputs alone"""
    if layout == "heads after tokens":
        q, k, v = (x.transpose(1, 2) for x in inputs(rand, H=TQ, Tq=H, Tk=H))
    elif layout == "features first":
        q, k, v = (x.transpose(2, 3) for x in inputs(rand, Tq=DK, Tk=DK, d_k=TQ))
    else:
        q, k, v = inputs(rand)
        k, v = k[:, :1].expand(B, H, TK, DK), v[:, :1].expand(B, H, TK, DK)
    expected = reference(q, k, v)
    with expect_unchanged(q=q, k=k, v=v):
        out = submission.flash_attention(v=v, k=k, q=q, dropout_p=0.0, causal=False, mask=None)
    expect_close(out, expected, axes=AXES)


@pytest.mark.points(3)
@pytest.mark.parametrize("causal", [False, True])
@torch.no_grad()
def test_memory(submission: Any, rand: Rand, causal: bool) -> None:
    """Twice as many tokens take about twice as much memory, not 4 times"""
    for few, many in LONG:
        peaks = []
        for T in (few, many):
            q, k, v = inputs(rand, 1, 1, T, T, 4)
            with submission.measured() as usage:
                out = submission.flash_attention(q, k, v, causal=causal)
            expect_shape(out, B=1, H=1, T=T, d_k=4)
            peaks.append(usage.peak)
        # 2.0 for SDPA and for blocks of a fixed size, 4.0 for anything of size T x T.
        growth = peaks[1] / max(1, peaks[0])
        if growth <= 2.5:
            return
    less, more = (f"{peak / 2**20:.1f} MiB" for peak in peaks)
    raise CheckFailed(
        f"The memory grows faster than the number of tokens, with causal={causal}\n"
        f"  expected  about 2 times as much for {many} tokens as for {few}\n"
        f"  got       {growth:.1f} times: {less}, then {more}"
    )
