"""Hidden checks of half_precision: no overflow, no blur, in values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from grader.checking import (
    Rand,
    Submission,
    draw_truths,
    expect_device,
    expect_dtype,
    expect_shape,
    expect_unchanged,
    expect_within,
    skip_unless_supported,
)

Inputs = tuple[Tensor, Tensor, Tensor]

AXES = "B H Tq d_k"
HALVES = [torch.float16, torch.bfloat16]
DTYPES = [*HALVES, torch.float32, torch.float64]


# --- the reference and its room --------------------------------------------------------------


def reference(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The result in float64, the same for the values' sizes, and the scores before the mask."""
    q, k, v = (x.cpu().double() for x in (q, k, v))
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    allowed = torch.ones((), dtype=torch.bool) if mask is None else (mask != 0).cpu()
    allowed = allowed.expand_as(scores)
    lowest = torch.finfo(torch.float64).min
    top = torch.where(allowed, scores, lowest).amax(-1, keepdim=True).detach()
    powers = torch.where(allowed, (torch.where(allowed, scores, top) - top).exp(), 0.0)
    total = powers.sum(-1, keepdim=True)
    weights = powers / torch.where(total > 0, total, 1.0)
    return weights @ v, weights @ v.abs(), scores


# A result is a sum of w·v. Rounding each weight and then the sum costs at most eps/2 of Σ w·|v|
# each, eps being the dtype's. A score s held in float32 is off by some s·2^-23, and its weight by
# as large a part of itself. Together: Σ w·|v| · (eps + 4·max|s|·2^-23). Sums of 5000 products in
# float32 cost more than float32's eps: so eps is at least 2^-19. For float64 inputs 2^-52 takes the
# place of 2^-23, and an answer that goes through float32 is off by some million times as much.
#
# Measured on a CPU with scores from 0.01 to 300000, T from 1 to 5000, d_k from 8 to 64, several
# hundred draws. As parts of that bound right answers reach, in half precision,
#     0.50  float32 or float64 up to the result (products in one go or one by one, q or both scaled
#           before, by logarithms, a running maximum over blocks of keys, torch's fused attention)
#     0.74  torch's fused attention on half precision; powers rounded, then divided by their sum
#     0.81  weights rounded before they meet the values
#     1.8   scores rounded once the maximum is off them
# and 0.64 for float32 inputs. Scores that were rounded themselves reach 28 where they spread over
# some tens, and 500 or more where float16 overflows. So with three times the bound the right ones
# stay well within it, and none of the wrong ones passes.
def room(dtype: torch.dtype, sizes: Tensor, scores: Tensor) -> Tensor:
    """How far an answer may be from the exact result, whatever it rounds on the way."""
    step = inner_eps(dtype)
    precision = max(torch.finfo(dtype).eps, 16 * step)
    return 3 * sizes * (precision + 4 * scores.abs().max() * step)


def inner_eps(dtype: torch.dtype) -> float:
    """The eps of the dtype in which to compute, for inputs of this dtype."""
    return torch.finfo(torch.promote_types(dtype, torch.float32)).eps


def expect_result(
    submission: Submission, inputs: Inputs, mask: Tensor | None = None, when: str = ""
) -> None:
    """Expect the result in the dtype of the inputs, within its room."""
    expected, sizes, scores = reference(*inputs, mask)
    with torch.no_grad():
        got = submission.stable_attention(*inputs, mask=mask)
    expect_dtype(got, inputs[0].dtype)
    leeway = room(got.dtype, sizes, scores)
    expect_within(got, expected, leeway, axes=AXES, what=f"the result{when}")


# --- inputs ----------------------------------------------------------------------------------


def drawn(rand: Rand, dtype: torch.dtype, Tq: int, Tk: int, d_k: int, scale: float = 1.0) -> Inputs:
    """Queries and keys of this size and values of size 1, B=2 and H=3."""
    q = rand(B=2, H=3, Tq=Tq, d_k=d_k, dtype=dtype, scale=scale)
    k = rand(B=2, H=3, Tk=Tk, d_k=d_k, dtype=dtype, scale=scale)
    return q, k, rand(B=2, H=3, Tk=Tk, d_k=d_k, dtype=dtype)


def alike(rand: Rand, dtype: torch.dtype) -> Inputs:
    """Products of +102400 for some queries and -102400 for others, and softmaxes that are soft."""
    q, k, v = drawn(rand, dtype, 5, 7, 64, scale=0.05)
    sign = torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0], device=q.device)[:, None]
    return ((q + 40) * sign).to(dtype), k + 40, v


def overflowing(rand: Rand, kind: str, dtype: torch.dtype) -> Inputs:
    """Inputs that fit into float16, with products that don't."""
    if kind == "alike":
        inputs = alike(rand, dtype)
    elif kind == "large":
        inputs = drawn(rand, dtype, 5, 7, 64, scale=100.0)
    else:
        inputs = drawn(rand, dtype, 5, 7, 12, scale=300.0)
    for query in inputs[:2]:
        query[0, 0, 0] = 270.0  # so that there is a product of more than 65504 for any seed
    return inputs


def blocked_rows(rand: Rand, seed: int, Tq: int, Tk: int) -> Tensor:
    """[B, H, Tq, Tk] with one query, one head and one sequence that see nothing."""
    mask = draw_truths(rand, seed, B=2, H=3, Tq=Tq, Tk=Tk)
    mask[:, :, 1] = False
    mask[0, 1] = False
    mask[1] = False
    return mask


# --- the values ------------------------------------------------------------------------------


@pytest.mark.points(1, hint=4)
@pytest.mark.pays("zeros", "ones", "input", because="only the shape, dtype and device are checked")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@torch.no_grad()
def test_kind(submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype) -> None:
    """The result has the dtype of the inputs"""
    skip_unless_supported(dtype, device)
    q = rand(B=2, H=3, Tq=4, d_k=8, dtype=dtype)
    k, v = rand(B=2, H=3, Tk=5, d_k=8, dtype=dtype), rand(B=2, H=3, Tk=5, d_k=8, dtype=dtype)
    result = submission.stable_attention(q, k, v)
    expect_shape(result, B=2, H=3, Tq=4, d_k=8)
    expect_dtype(result, dtype)
    expect_device(result, device)


@pytest.mark.points(2, hint=6)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """Ordinary scores give the result of the formula, up to rounding"""
    skip_unless_supported(dtype, device)
    for Tq, Tk, d_k in ((1, 2, 4), (4, 5, 8), (5, 1, 6), (3, 7, 24)):
        expect_result(submission, drawn(rand, dtype, Tq, Tk, d_k))


@pytest.mark.points(2, hint=1)
@pytest.mark.parametrize("kind", ["large", "larger", "alike"])
@pytest.mark.parametrize("dtype", [*HALVES, torch.float32], ids=str)
def test_overflow(submission: Submission, rand: Rand, kind: str, dtype: torch.dtype) -> None:
    """Products beyond 65504, float16's largest number, give the right result"""
    expect_result(submission, overflowing(rand, kind, dtype))


@pytest.mark.points(2, hint=2)
@pytest.mark.parametrize("scale", [3.0, 6.0])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_sharp(submission: Submission, rand: Rand, dtype: torch.dtype, scale: float) -> None:
    """Scores of 10 to 100 are not rounded to half precision"""
    expect_result(submission, drawn(rand, dtype, 6, 9, 20, scale=scale))


@pytest.mark.points(2, hint=5)
@pytest.mark.parametrize(
    "kind, dtype",
    [
        *((kind, dtype) for dtype in DTYPES for kind in ("alike, large values", "unlike weights")),
        *(("70000 keys", dtype) for dtype in HALVES),
    ],
    ids=str,
)
def test_long(
    submission: Submission, rand: Rand, device: torch.device, kind: str, dtype: torch.dtype
) -> None:
    """With thousands of keys, no sum overflows"""
    skip_unless_supported(dtype, device)
    if kind == "70000 keys":  # all nearly equal, so the sum of the powers also exceeds 65504
        q, k, v = drawn(rand, dtype, 1, 70000, 2, scale=0.01)
        inputs = q[:1, :1], k[:1, :1], v[:1, :1].abs() + 1
    elif kind == "unlike weights":
        q, k, v = drawn(rand, dtype, 3, 3000, 8, scale=1.5)
        inputs = q, k, v * 10
    else:
        q, k, v = drawn(rand, dtype, 3, 3000, 8, scale=0.3)
        inputs = q, k, v.abs() * 10 + 40
    expect_result(submission, inputs)


# --- masks -----------------------------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize("axes", ["Tq Tk", "H Tq Tk", "B 1 1 Tk", "1 H 1 Tk", "B H Tq Tk"])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_masks(
    submission: Submission, rand: Rand, seed: int, axes: str, dtype: torch.dtype
) -> None:
    """Masks of every shape and dtype work, for large scores too"""
    place = {"B": 2, "H": 3, "Tq": 5, "Tk": 7}
    shape = {f"axis_{n}": place.get(axis, 1) for n, axis in enumerate(axes.split())}
    mask = draw_truths(rand, seed, **shape)
    when = f" for a mask [{', '.join(axes.split())}]"
    wide = [] if mask.device.type == "mps" else [torch.float64]  # which Apple's GPUs lack
    for kind in (torch.bool, torch.int64, torch.float32, dtype, *wide):
        given = mask.to(kind)
        with expect_unchanged(mask=given):
            expect_result(submission, drawn(rand, dtype, 5, 7, 8), given, f"{when} of {kind}")
    q, k, v = alike(rand, dtype)
    expect_result(submission, (q, k, v), mask, when)
    expect_result(submission, (8 * q, k, v), mask, when)  # scores below float16's lowest number
    spread = drawn(rand, dtype, 5, 7, 8, scale=6.0)
    expect_result(submission, spread, mask, f"{when} and scores of some tens")
    for few in (1, 2):  # two, as there are sequences
        part = mask[..., :few, :] if mask.dim() == 2 else mask[..., :few, :few, :]
        q, k, v = (x[:, :few] for x in drawn(rand, dtype, few, 7, 8))
        expect_result(submission, (q, k, v), part, f"{when}, H={few} and Tq={few}")


@pytest.mark.points(1)
@pytest.mark.parametrize("kind", ["ordinary", "alike"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_blocked(
    submission: Submission,
    rand: Rand,
    seed: int,
    device: torch.device,
    kind: str,
    dtype: torch.dtype,
) -> None:
    """A query that may see no key gets zeros and changes no other result"""
    skip_unless_supported(dtype, device)
    inputs = alike(rand, dtype) if kind == "alike" else drawn(rand, dtype, 5, 7, 8)
    mask = blocked_rows(rand, seed, 5, 7)
    with expect_unchanged(mask=mask):
        expect_result(submission, inputs, mask)
    expect_result(submission, inputs, mask.long(), " for a mask of numbers")
    nothing = torch.zeros(5, 7, dtype=torch.bool, device=inputs[0].device)
    expect_result(submission, inputs, nothing, " where nothing is allowed")


# --- gradients -------------------------------------------------------------------------------


def gradients(output: Tensor, inputs: Inputs, cotangent: Tensor) -> dict[str, Tensor | None]:
    """The gradients of q, k and v, as far as there are any."""
    found: tuple[Tensor | None, ...] = (None,) * 3
    if output.requires_grad:
        product = (output * cotangent.to(output.dtype).to(output.device)).sum()
        found = torch.autograd.grad(product, inputs, allow_unused=True)
    return dict(zip("qkv", found, strict=True))


def both_gradients(
    submission: Submission, rand: Rand, inputs: Inputs, mask: Tensor | None = None
) -> tuple[dict[str, Tensor | None], dict[str, Tensor | None], Tensor]:
    """The learner's gradients, the exact ones, and the scores."""
    leaves = tuple(x.detach().clone().requires_grad_() for x in inputs)
    q, k, v = leaves
    expected, _, scores = reference(q, k, v, mask)
    got = submission.stable_attention(q, k, v, mask=mask)
    expect_shape(got, **dict(zip(AXES.split(), expected.shape, strict=True)))
    # Signs, which every dtype holds: so both sides start with the same numbers.
    cotangent = rand(**dict(zip(AXES.split(), expected.shape, strict=True))).sign().cpu()
    exact = tuple(x.detach().cpu().double().requires_grad_() for x in leaves)
    wanted = gradients(reference(exact[0], exact[1], exact[2], mask)[0], exact, cotangent)
    return gradients(got, (q, k, v), cotangent), wanted, scores.detach()


# For ordinary scores the right ones above are off by 0.5 to 2.2 times eps of the largest number,
# the most where a fused kernel rounds on the way back; with scores of 12800 that of v is, by 1.4.
def expect_gradient(
    got: Tensor | None, wanted: Tensor | None, what: str, scores: Tensor, dtype: torch.dtype
) -> None:
    """Expect a gradient up to some roundings of its largest number."""
    assert wanted is not None, f"The reference of {what} has no gradient"
    assert got is not None, (
        f"No gradient reaches {what}\n"
        f"  expected  a result that depends on {what} through torch's operations\n"
        f"  got       a result that is cut off from {what}"
    )
    step = inner_eps(dtype)
    precision = max(torch.finfo(dtype).eps, 16 * step)
    leeway = 6 * wanted.abs().max() * (precision + 4 * scores.abs().max() * step)
    axes = "B H Tq d_k" if what == "q" else "B H Tk d_k"
    expect_within(got, wanted, leeway, axes=axes, what=f"the gradient of {what}")


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients(
    submission: Submission, rand: Rand, device: torch.device, dtype: torch.dtype
) -> None:
    """The gradients of q, k and v are as precise as their dtype"""
    skip_unless_supported(dtype, device)
    got, wanted, scores = both_gradients(submission, rand, drawn(rand, dtype, 4, 6, 8))
    for name in "qkv":
        expect_gradient(got[name], wanted[name], name, scores, dtype)


@pytest.mark.points(1)
@pytest.mark.parametrize("kind", ["large", "larger", "alike"])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_overflow_gradients(
    submission: Submission, rand: Rand, kind: str, dtype: torch.dtype
) -> None:
    """Products beyond 65504 put no inf or NaN into a gradient"""
    inputs = overflowing(rand, kind, dtype)
    got, wanted, scores = both_gradients(submission, rand, inputs)
    for name in "qk":  # near 0, because the softmax is almost one-hot: no tolerance would be fair
        found = got[name]
        assert found is None or found.isfinite().all(), (
            f"The gradient of {name} holds inf or NaN\n"
            f"  expected  finite numbers\n"
            f"  got       {int((~found.isfinite()).sum())} that are not"
        )
    expect_gradient(got["v"], wanted["v"], "v", scores, dtype)


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_blocked_gradients(
    submission: Submission, rand: Rand, seed: int, device: torch.device, dtype: torch.dtype
) -> None:
    """Blocked keys and rows put no NaN into a gradient"""
    skip_unless_supported(dtype, device)
    inputs, mask = drawn(rand, dtype, 5, 7, 8), blocked_rows(rand, seed, 5, 7)
    mask[1, 0, 0, :2] = True
    got, wanted, scores = both_gradients(submission, rand, inputs, mask)
    for name in "qkv":
        expect_gradient(got[name], wanted[name], name, scores, dtype)


# --- calls -----------------------------------------------------------------------------------


@pytest.mark.points(1)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@torch.no_grad()
def test_calls(submission: Submission, rand: Rand, seed: int, dtype: torch.dtype) -> None:
    """Inputs may be strided views, are not changed, and can be given by name"""
    q = rand(B=2, Tq=4, H=3, d_k=8, dtype=dtype).transpose(1, 2)
    k = rand(B=2, H=3, d_k=8, Tk=6, dtype=dtype).transpose(2, 3)
    v = rand(B=2, H=3, Tk=12, d_k=8, dtype=dtype)[:, :, ::2]
    mask = draw_truths(rand, seed, B=2, H=1, Tq=4, Tk=6).float()
    expected, sizes, scores = reference(q, k, v, mask)
    leeway = room(dtype, sizes, scores)
    with expect_unchanged(q=q, k=k, v=v, mask=mask):
        by_position = submission.stable_attention(q, k, v, mask)
        by_name = submission.stable_attention(mask=mask, v=v, k=k, q=q)
    expect_within(by_position, expected, leeway, axes=AXES, what="the result by position")
    expect_within(by_name, expected, leeway, axes=AXES, what="the result by name")
