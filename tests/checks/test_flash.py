"""Hidden checks of flash: values of every kind of mask, and memory that grows with the tokens.

`reference` computes the attention of one query at a time in float64 on the CPU. For the memory a
new process makes a single call, and the kernel says how large the process became.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import torch
from torch import Tensor

from grader.checking import (
    CheckFailed,
    Rand,
    Submission,
    draw_truths,
    expect_close,
    expect_device,
    expect_dropped,
    expect_dtype,
    expect_gradients_close,
    expect_shape,
    expect_unchanged,
    skip_unless_supported,
)

AXES = "B H Tq d_k"
ALONG = {"B": "sequences", "H": "heads", "Tq": "queries", "Tk": "keys"}
B, H, TQ, TK, DK = 2, 3, 5, 7, 4
# Blocks of 16 tokens take little memory, but long: fewer tokens must do for them. Blocks of 2048
# tokens must be small beside the matrix.
SHORT, LONG = 1024, 2500
PAIR = 4  # bytes of a number of the matrix, one for a query and a key


def reference(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    queries: Iterable[int] | None = None,
) -> Tensor:
    """The output of all queries or of some, one at a time, in float64 on the CPU."""
    q, k, v = (x.cpu().double() for x in (q, k, v))
    allowed = torch.ones((), dtype=torch.bool) if mask is None else (mask != 0).cpu()
    allowed = allowed.expand(*q.shape[:3], k.shape[2])
    rows = []
    for i in range(q.shape[2]) if queries is None else queries:
        scores = (q[:, :, i : i + 1] * k).sum(-1) / q.shape[-1] ** 0.5  # B H Tk
        powers = (scores - scores.detach().amax(-1, keepdim=True)).exp() * allowed[:, :, i]
        if causal:
            powers = powers * (torch.arange(k.shape[2]) <= i)
        total = powers.sum(-1, keepdim=True)
        weights = powers / (total + (total == 0))  # a row of zeros stays zero
        rows.append((weights.unsqueeze(-1) * v).sum(2))
    return torch.stack(rows, dim=2)


def inputs(
    rand: Rand, B: int = B, H: int = H, Tq: int = TQ, Tk: int = TK, d_k: int = DK, **options: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values."""
    return (
        rand(B=B, H=H, Tq=Tq, d_k=d_k, **options),
        rand(B=B, H=H, Tk=Tk, d_k=d_k, **options),
        rand(B=B, H=H, Tk=Tk, d_k=d_k, **options),
    )


def scattered(rand: Rand, seed: int, *shape: int) -> Tensor:
    """A mask at random, with an allowed and a blocked key in every row."""
    return draw_truths(rand, seed, **{f"axis_{place}": size for place, size in enumerate(shape)})


def some_rows_blocked(rand: Rand, Tq: int = TQ, Tk: int = TK) -> Tensor:
    """[B, 1, Tq, Tk]: one query of the first sequence, and all of the last, see nothing."""
    mask = rand(B=B, one=1, Tq=Tq, Tk=Tk) > 0
    mask[..., 0] = True
    mask[0, :, 2] = False
    mask[-1] = False
    return mask


@pytest.mark.points(1, hint=2)
@pytest.mark.pays("zeros", "ones", "input", because="only the shape, dtype and device are checked")
@pytest.mark.parametrize(
    ("B", "H", "Tq", "Tk", "d_k"), [(1, 1, 1, 1, 1), (2, 3, 5, 7, 4), (3, 2, 6, 4, 5)]
)
def test_shape(
    submission: Submission,
    rand: Rand,
    device: torch.device,
    B: int,
    H: int,
    Tq: int,
    Tk: int,
    d_k: int,
) -> None:
    """Returns [B, H, Tq, d_k], in the dtype and on the device of q"""
    out = submission.flash_attention(*inputs(rand, B, H, Tq, Tk, d_k))
    expect_shape(out, B=B, H=H, Tq=Tq, d_k=d_k)
    expect_dtype(out, torch.float32)
    expect_device(out, device)


@pytest.mark.points(2, hint=2)
@pytest.mark.parametrize(
    ("B", "H", "Tq", "Tk", "d_k"),
    [(1, 1, 2, 3, 2), (2, 3, 5, 7, 4), (3, 2, 6, 4, 8), (2, 4, 1, 5, 3), (2, 2, 3, 300, 4)],
)
def test_values(
    submission: Submission, rand: Rand, B: int, H: int, Tq: int, Tk: int, d_k: int
) -> None:
    """Each query gets the values weighted by the softmax of its scores"""
    q, k, v = inputs(rand, B, H, Tq, Tk, d_k)
    expect_close(submission.flash_attention(q, k, v), reference(q, k, v), axes=AXES)


@pytest.mark.points(1)
@pytest.mark.parametrize("shift", [0.0, 30.0, -30.0])
def test_large(submission: Submission, rand: Rand, shift: float) -> None:
    """Scores of several hundred, positive or negative, give no NaN"""
    # If an answer takes keys in blocks, the first block says nothing about the last one.
    for Tk, late in ((9, 0), (700, 640)):
        q, k, v = inputs(rand, Tk=Tk)
        q = (q * 8).round() / 2
        k = (k * 8).round() / 2  # halves, so that every right answer has exactly the same scores
        k[:, :, late:] += shift
        expect_close(submission.flash_attention(q, k, v), reference(q, k, v), axes=AXES)


@pytest.mark.points(2, hint=3)
@pytest.mark.parametrize(
    ("axes", "dtype"),
    [
        ("Tq Tk", torch.bool),
        ("H Tq Tk", torch.bool),
        ("B 1 1 Tk", torch.bool),
        ("B 1 Tq Tk", torch.float32),
        ("1 H 1 Tk", torch.int64),
        ("B H Tq Tk", torch.bool),
        ("Tq Tk", torch.uint8),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("B", "Tq", "Tk", "scale"),
    [
        *((B, TQ, TK, 1.0), (B, 1, TK, 1.0), (TQ, TQ, TK, 1.0), (B, TQ, TK, 6.0)),
        *((B, TQ, 700, 1.0), (B, 300, TK, 1.0)),
    ],
    ids=[
        *("", "one query", "as many queries as sequences", "large scores"),
        *("many keys", "many queries"),
    ],
)
def test_masks(
    submission: Submission,
    rand: Rand,
    seed: int,
    axes: str,
    dtype: torch.dtype,
    B: int,
    Tq: int,
    Tk: int,
    scale: float,
) -> None:
    """Masks of every shape work, as booleans and as zeros and ones"""
    sizes = {"B": B, "H": H, "Tq": Tq, "Tk": Tk, "1": 1}
    q, k, v = inputs(rand, B, Tq=Tq, Tk=Tk, scale=scale)
    mask = scattered(rand, seed, *(sizes[axis] for axis in axes.split()))
    if Tk > TK:  # to an answer that takes keys in blocks, nothing in the first or the last is seen
        rows = mask.view(-1, Tk)
        rows[0, :-60] = False
        rows[1, 60:] = False
    mask = mask.to(dtype)
    expected = reference(q, k, v, mask)
    with expect_unchanged(q=q, k=k, v=v, mask=mask):
        out = submission.flash_attention(q, k, v, mask)
    # A score of several hundred has an error of about 1e-4 in float32, and so do its weights.
    tolerance = 5e-3 if scale > 1 else None
    expect_close(out, expected, axes=AXES, rtol=tolerance, atol=tolerance)


@pytest.mark.points(1, hint=4)
@pytest.mark.parametrize("T", [3, 5, 1, 700])
def test_causal(submission: Submission, rand: Rand, T: int) -> None:
    """With causal=True no token sees a later one"""
    for scale in (1.0, 6.0):
        q, k, v = inputs(rand, 1, 2, T, T, scale=scale)
        out = submission.flash_attention(q, k, v, causal=True)
        tolerance = 5e-3 if scale > 1 else None  # large scores have an error of about 1e-4
        expected = reference(q, k, v, causal=True)
        expect_close(out, expected, axes=AXES, rtol=tolerance, atol=tolerance)


@pytest.mark.points(2, hint=4)
@pytest.mark.parametrize(
    ("axes", "T"), [("B 1 1 T", TQ), ("T T", TQ), ("B H T T", TQ), ("T T", 300), ("B 1 1 T", 300)]
)
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32], ids=str)
def test_both(
    submission: Submission, rand: Rand, seed: int, axes: str, T: int, dtype: torch.dtype
) -> None:
    """With a mask and causal=True, a pair is blocked if either blocks it"""
    sizes = {"B": B, "H": H, "T": T, "1": 1}
    q, k, v = inputs(rand, Tq=T, Tk=T)
    mask = scattered(rand, seed, *(sizes[axis] for axis in axes.split())).to(dtype)
    expected = reference(q, k, v, mask, causal=True)
    with expect_unchanged(mask=mask):
        out = submission.flash_attention(q, k, v, mask=mask, causal=True)
    expect_close(out, expected, axes=AXES)


@pytest.mark.points(1, hint=3)
@pytest.mark.parametrize("causal", [False, True])
def test_blocked_rows(submission: Submission, rand: Rand, causal: bool) -> None:
    """A query that may see nothing gets zeros"""
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
@pytest.mark.parametrize(
    ("kind", "Tq", "Tk"),
    [
        *(("plain", TQ, TK), ("mask", TQ, TK), ("causal", TQ, TQ), ("both", TQ, TQ)),
        # Many blocks, the last of which is not full.
        *(("plain", 300, 130), ("causal", 300, 300), ("both", 300, 300)),
    ],
)
def test_gradients(
    submission: Submission, rand: Rand, seed: int, kind: str, Tq: int, Tk: int
) -> None:
    """Gradients flow back into q, k and v"""
    q, k, v = inputs(rand, Tq=Tq, Tk=Tk, grad=True)
    mask = scattered(rand, seed, B, 1, Tq, Tk) if kind in ("mask", "both") else None
    if kind == "both" and mask is not None:
        mask[..., 0] = True
    causal = kind in ("causal", "both")
    expected = reference(q, k, v, mask, causal)
    out = submission.flash_attention(q, k, v, mask, causal)
    # Sums of many terms, rounded accordingly in float32.
    leaves = {"q": q, "k": k, "v": v}
    expect_gradients_close(out, expected, leaves, rtol=1e-3, atol=1e-4)


@pytest.mark.points(1)
def test_blocked_gradients(submission: Submission, rand: Rand) -> None:
    """Queries that may see nothing put no NaN into a gradient"""
    q, k, v = inputs(rand, grad=True)
    mask = some_rows_blocked(rand)
    expected = reference(q, k, v, mask)
    out = submission.flash_attention(q, k, v, mask)
    leaves = {"q": q, "k": k, "v": v}
    expect_gradients_close(out, expected, leaves, rtol=1e-3, atol=1e-4)


@pytest.mark.points(1, hint=5)
@pytest.mark.parametrize(
    ("p", "kind"), [(0.5, "plain"), (0.2, "masked"), (0.2, "causal"), (0.5, "both")]
)
def test_dropout(
    submission: Submission, rand: Rand, device: torch.device, p: float, kind: str
) -> None:
    """dropout_p drops single weights and divides the others by 1 - dropout_p"""
    # A value is 1 in two of its features, so a weight can be read off the output twice.
    B, H, Tk = 5, 6, 5
    causal = kind in ("causal", "both")
    Tq = Tk if causal else 30
    grad = kind in ("plain", "masked")  # weights are dropped without gradients too
    q, k, _ = inputs(rand, B, H, Tq, Tk, 2 * Tk, scale=0.5, grad=grad)
    v = torch.eye(Tk, device=device).repeat(B, H, 1, 2)
    # The kernels that drop weights are others, and do not take the same arguments together.
    mask = torch.arange(Tk, device=device) != 2 if kind in ("masked", "both") else None
    mask = mask if mask is None else mask.reshape(1, 1, 1, Tk)
    weights = reference(q, k, v, mask, causal)[..., :Tk]
    with expect_unchanged(q=q, k=k, v=v, **({} if mask is None else {"mask": mask})):
        out = submission.flash_attention(q, k, v, mask, causal, dropout_p=p)
    expect_shape(out, B=B, H=H, Tq=Tq, d_k=2 * Tk)
    once, again = out.split(Tk, dim=-1)
    expect_dropped(once, again, weights, p, axes=ALONG, inputs={"q": q, "k": k} if grad else None)


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_dtypes(
    submission: Submission, rand: Rand, seed: int, device: torch.device, dtype: torch.dtype
) -> None:
    """The result has the dtype of the inputs, with and without a mask"""
    skip_unless_supported(dtype, device)
    q, k, v = inputs(rand, Tk=TQ, dtype=dtype)
    # Only the dtype matters here. Computed in half precision throughout, right answers are off by
    # up to 0.002 (float16) and 0.023 (bfloat16); a softmax in float32 is not a mistake for float64.
    tolerance = {torch.float64: 1e-5, torch.float16: 0.01, torch.bfloat16: 0.08}[dtype]
    for mask in (None, scattered(rand, seed, B, 1, TQ, TQ)):
        for causal in (False, True):
            expected = reference(q, k, v, mask, causal)
            with expect_unchanged(q=q, k=k, v=v):
                out = submission.flash_attention(q, k, v, mask=mask, causal=causal)
            expect_dtype(out, dtype)
            expect_close(out, expected, axes=AXES, rtol=tolerance, atol=tolerance)
            out = submission.flash_attention(q, k, v, mask, causal, dropout_p=0.5)
            expect_dtype(out, dtype, "the result with dropout")


@pytest.mark.points(1)
@pytest.mark.parametrize("layout", ["heads after tokens", "features first", "one head for all"])
def test_calls(submission: Submission, rand: Rand, layout: str) -> None:
    """Inputs may be strided views, are not changed, and can be given by name"""
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


def peak(submission: Submission, rand: Rand, T: int, causal: bool) -> int:
    """The most bytes that a right call for T tokens takes at once; a wrong one fails the check."""
    # Scores of ten and more: half precision, and so half the memory, is not exact enough.
    q, k, v = (x.cpu() for x in inputs(rand, 1, 1, T, T, 4, scale=2.0))
    with submission.measured() as usage:
        out = submission.flash_attention(q, k, v, causal=causal)
    expect_shape(out, B=1, H=1, T=T, d_k=4)
    some = [0, T - 1, *(int(T * x) for x in torch.sigmoid(3 * rand(query=40)).tolist())]
    expect_close(out[:, :, some], reference(q, k, v, causal=causal, queries=some), axes=AXES)
    return int(usage.peak)


@pytest.mark.points(3, hint=1)
@pytest.mark.random
@pytest.mark.parametrize("causal", [False, True])
@torch.no_grad()
def test_memory(submission: Submission, rand: Rand, causal: bool) -> None:
    """Twice as many tokens take about twice the memory, not four times"""
    more = int(100 * rand(tokens=1).abs().item())  # so that T does not reveal the purpose
    T = SHORT + more
    if peak(submission, rand, T, causal) < PAIR * T * T / 8:
        return
    T = LONG + more
    few, many = (peak(submission, rand, tokens, causal) for tokens in (T, 2 * T))
    whole = PAIR * (2 * T) ** 2
    # 1 to 2 for SDPA and for blocks of a fixed size, 4 for anything of size T x T. Small blocks
    # need so little that the allocator's own overhead decides the ratio.
    if many > whole or (many > 2.5 * few and many > whole / 16):
        less, most, matrix = (f"{size / 2**20:.1f} MiB" for size in (few, many, whole))
        raise CheckFailed(
            f"The memory grows faster than the number of tokens, with causal={causal}\n"
            f"  expected  about 2 times as much for {2 * T} tokens as for {T}, and less than "
            f"{matrix}, the size of a matrix of {2 * T} x {2 * T} numbers\n"
            f"  got       {many / max(1, few):.1f} times: {less}, then {most}"
        )
