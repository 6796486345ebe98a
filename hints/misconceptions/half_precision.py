"""Known misconceptions of the stage half_precision: what people really write, and a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from grader.misconceptions import Value, misconception, symptom, values


def _wide(*tensors: Tensor) -> list[Tensor]:
    return [x.to(torch.promote_types(x.dtype, torch.float32)) for x in tensors]


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return torch.matmul(q, k.mT) / math.sqrt(q.shape[-1])


def _blocked(scores: Tensor, mask: Tensor | None, low: float = float("-inf")) -> Tensor:
    return scores if mask is None else scores.masked_fill(mask == 0, low)


def _softmax(scores: Tensor) -> Tensor:
    empty = scores.isneginf().all(-1, keepdim=True)
    return scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)


@values(of="stable_attention")
def way(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Iterator[Value]:
    """The values on the way to the result, so close that a rounding to half precision shows."""
    a, b, c = _wide(q, k, v)
    scores = _scores(a, b)
    eps = torch.finfo(a.dtype).eps
    off = 8 * eps * scores.abs().max().item()  # a score, and a weight by as large a part of itself
    yield Value("the scaled scores", scores, "B H Tq Tk", (256 * eps, off))
    if mask is not None:
        scores = _blocked(scores, mask)
        yield Value("the masked scores", scores, "B H Tq Tk", (256 * eps, off))
    weights = _softmax(scores)
    if off < 1e-3:
        yield Value("the weights", weights, "B H Tq Tk", (256 * eps + 2 * off, eps))
    last = max(torch.finfo(v.dtype).eps, 256 * eps + 2 * off)
    size = (weights @ c.abs()).max().item()
    yield Value("the result", weights @ c, "B H Tq d_k", (min(last, 1e-2), min(last, 1e-2) * size))


@misconception(
    "half_throughout",
    replaces="stable_attention",
    says="You compute everything in the inputs' dtype. Products beyond 65504 become inf in "
    "float16, and bfloat16 rounds a score of 300 by up to 1: compute the scores in float32.",
    hint=1,
)
def half_throughout(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return _softmax(_blocked(_scores(q, k), mask)) @ v


@misconception(
    "half_converted_late",
    replaces="stable_attention",
    says="You convert the scores to float32 after the product. By then they have overflowed or "
    "been rounded: convert q and k first.",
    hint=3,
)
def half_converted_late(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    product, values = _wide(q @ k.mT, v)
    scores = product / math.sqrt(q.shape[-1])
    return (_softmax(_blocked(scores, mask)) @ values).to(v.dtype)


@misconception(
    "half_converted_after_scaling",
    replaces="stable_attention",
    says="You convert the scaled scores to float32. By then they have overflowed or been rounded: "
    "convert q and k before they are multiplied.",
    hint=3,
)
def half_converted_after_scaling(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> Tensor:
    scores, values = _wide(_scores(q, k), v)
    return (_softmax(_blocked(scores, mask)) @ values).to(v.dtype)


@misconception(
    "half_softmax_wide",
    replaces="stable_attention",
    says="Only your softmax computes in float32, as in many published models. The scores that it "
    "gets have overflowed or been rounded before: convert q and k first.",
    hint=3,
)
def half_softmax_wide(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    [scores] = _wide(_blocked(_scores(q, k), mask))
    return _softmax(scores).to(v.dtype) @ v


@misconception(
    "half_softmax_float32",
    replaces="stable_attention",
    says="Your softmax always computes in float32. That takes half of the digits of float64 "
    "scores, and does not bring back what scores in half precision lost before it: convert q and k "
    "first, to the wider of float32 and their own dtype.",
    hint=3,
)
def half_softmax_float32(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return _softmax(_blocked(_scores(q, k), mask).float()).to(v.dtype) @ v


@misconception(
    "half_softmax_wide_blocked_nan",
    replaces="stable_attention",
    says="Two mistakes, as in many published models: only your softmax computes in float32, so the "
    "scores that it gets have overflowed or been rounded before; and a query that may see no key "
    "gets NaN.",
    hint=3,
)
def half_softmax_wide_blocked_nan(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> Tensor:
    scores = _blocked(_scores(q, k), mask)
    return scores.softmax(dim=-1, dtype=torch.float32).to(q.dtype) @ v


@misconception(
    "half_rounded_scores",
    replaces="stable_attention",
    says="Your scores pass through half precision, perhaps because you scale q first or convert "
    "the scores back before the softmax. That rounds scores of some tens too coarsely; keep them "
    "in float32 all the way.",
    hint=3,
)
def half_rounded_scores(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b = _wide(q, k)
    return _softmax(_blocked(_scores(a, b).to(q.dtype), mask)) @ v


@misconception(
    "half_scaled_first",
    replaces="stable_attention",
    says="You scale q and multiply it by k in half precision, and convert the scores afterwards. "
    "That postpones the overflow but still rounds the scores: convert q and k first.",
    hint=3,
)
def half_scaled_first(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    scores, values = _wide(q / math.sqrt(q.shape[-1]) @ k.mT, v)
    return (_softmax(_blocked(scores, mask)) @ values).to(v.dtype)


@misconception(
    "half_scaled_first_throughout",
    replaces="stable_attention",
    says="You scale q first and compute everything in the inputs' dtype. That postpones the "
    "overflow but still rounds the scores: convert q and k to float32 first.",
    hint=3,
)
def half_scaled_first_throughout(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> Tensor:
    return _softmax(_blocked(q / math.sqrt(q.shape[-1]) @ k.mT, mask)) @ v


@misconception(
    "half_clamped",
    replaces="stable_attention",
    says="You clamp scores that overflowed, so different scores become equal. Keep them from "
    "overflowing.",
    hint=3,
)
def half_clamped(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    ends = torch.finfo(q.dtype)
    scores = _scores(q, k).clamp(ends.min, ends.max)
    return _softmax(_blocked(scores, mask)) @ v


@misconception(
    "half_nan_to_num",
    replaces="stable_attention",
    says="You replace the NaN of the result by 0, but the right answer is not 0. Find out where "
    "the first inf comes from.",
    hint=2,
)
def half_nan_to_num(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return (_softmax(_blocked(_scores(q, k), mask)) @ v).nan_to_num()


@misconception(
    "half_to_bfloat16",
    replaces="stable_attention",
    says="You convert float16 to bfloat16. That does not overflow, but bfloat16 has only 8 bits "
    "of precision, so scores are blurred. float32 has the range and the precision.",
    hint=2,
)
def half_to_bfloat16(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    if q.dtype != torch.float16:
        a, b, c = _wide(q, k, v)
    else:
        a, b, c = q.bfloat16(), k.bfloat16(), v.bfloat16()
    return (_softmax(_blocked(_scores(a, b), mask)) @ c).to(v.dtype)


@misconception(
    "half_only_float16",
    replaces="stable_attention",
    says="You convert float16 and leave bfloat16 as it is. It does not overflow, but it rounds "
    "eight times as coarsely.",
    hint=2,
)
def half_only_float16(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = (x.float() if x.dtype == torch.float16 else x for x in (q, k, v))
    return (_softmax(_blocked(_scores(a, b), mask)) @ c).to(v.dtype)


@misconception(
    "half_only_bfloat16",
    replaces="stable_attention",
    says="You convert bfloat16 and leave float16 as it is. Its largest number is 65504, so "
    "products of large queries and keys are inf.",
    hint=1,
)
def half_only_bfloat16(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = (x.float() if x.dtype == torch.bfloat16 else x for x in (q, k, v))
    return (_softmax(_blocked(_scores(a, b), mask)) @ c).to(v.dtype)


@misconception(
    "half_float64_lost",
    replaces="stable_attention",
    says="For float64 inputs your result is float32. Return the dtype of the inputs, whichever it "
    "is.",
    hint=4,
)
def half_float64_lost(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = (x.float() for x in (q, k, v))
    result = _softmax(_blocked(_scores(a, b), mask)) @ c
    return result if v.dtype == torch.float64 else result.to(v.dtype)


@misconception(
    "half_float32_out",
    replaces="stable_attention",
    says="You compute in float32 whatever the inputs are, and your result stays float32. Compute "
    "in the wider of float32 and their dtype, and return theirs.",
    hint=4,
)
def half_float32_out(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = (x.float() for x in (q, k, v))
    return _softmax(_blocked(_scores(a, b), mask)) @ c


@misconception(
    "half_float16_out",
    replaces="stable_attention",
    says="Your result is always float16. Return the dtype of the inputs, whichever it is.",
    hint=4,
)
def half_float16_out(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return half_float32_out(q, k, v, mask).half()


@misconception(
    "half_no_maximum",
    replaces="stable_attention",
    says="You take exp of the scores as they are. Even in float32 exp(89) is inf: subtract the "
    "row's maximum first, or use your attention_weights.",
    hint=3,
)
def half_no_maximum(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = _wide(q, k, v)
    powers = _blocked(_scores(a, b), mask).exp()
    total = powers.sum(-1, keepdim=True)
    return (powers @ c / (total + (total == 0))).to(v.dtype)


@misconception(
    "half_sum_before_division",
    replaces="stable_attention",
    says="You add up exponentials times values in half precision and divide afterwards. With "
    "thousands of keys the sum is inf, though the average would fit.",
    hint=5,
)
def half_sum_before_division(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = _wide(q, k, v)
    scores = _blocked(_scores(a, b), mask)
    top = scores.amax(-1, keepdim=True)
    powers = (scores - top.masked_fill(top.isneginf(), 0.0)).exp()
    total = powers.sum(-1, keepdim=True)
    mixed = (powers @ c).to(v.dtype).to(c.dtype)
    return (mixed / (total + (total == 0))).to(v.dtype)


@misconception(
    "half_float32_always",
    replaces="stable_attention",
    says="You always compute in float32, so float64 inputs lose half of their digits. Use the "
    "wider of float32 and the inputs' dtype.",
    hint=6,
)
def half_float32_always(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return half_float32_out(q, k, v, mask).to(v.dtype)


@misconception(
    "half_total_rounded",
    replaces="stable_attention",
    says="You keep the sum of the exponentials in half precision. 70000 of them, each nearly 1, "
    "add up to more than 65504, which float16 cannot hold: divide in float32.",
    hint=5,
)
def half_total_rounded(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = _wide(q, k, v)
    scores = _blocked(_scores(a, b), mask)
    top = scores.amax(-1, keepdim=True)
    powers = (scores - top.masked_fill(top.isneginf(), 0.0)).exp()
    total = powers.sum(-1, keepdim=True).to(v.dtype).to(c.dtype)
    return (powers @ c / (total + (total == 0))).to(v.dtype)


@misconception(
    "half_minus_10000",
    replaces="stable_attention",
    says="You block with -10000, because it fits into float16. A query that may see nothing then "
    "sees everything, and real scores may be lower. In float32 you can use -inf.",
    hint=4,
)
def half_minus_10000(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = _wide(q, k, v)
    return (_softmax(_blocked(_scores(a, b), mask, -10000.0)) @ c).to(v.dtype)


@misconception(
    "half_minus_1e9",
    replaces="stable_attention",
    says="A query that may see no key gets the average of all values, as when you block with -1e9 "
    "or the lowest number of the dtype. Block with -inf, and give such a query zeros.",
    hint=4,
)
def half_minus_1e9(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = _wide(q, k, v)
    return (_softmax(_blocked(_scores(a, b), mask, -1e9)) @ c).to(v.dtype)


@misconception(
    "half_blocked_nan",
    replaces="stable_attention",
    says="A query that may see no key gets NaN from your softmax. Your attention_weights gives "
    "zeros instead: use it.",
    hint=4,
)
def half_blocked_nan(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = _wide(q, k, v)
    return (_blocked(_scores(a, b), mask).softmax(-1) @ c).to(v.dtype)


@misconception(
    "half_mask_inverted",
    replaces="stable_attention",
    says="You block where the mask is True, as nn.MultiheadAttention does. In this course True "
    "means allowed.",
    hint=4,
)
def half_mask_inverted(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = _wide(q, k, v)
    turned = None if mask is None else mask == 0
    return (_softmax(_blocked(_scores(a, b), turned)) @ c).to(v.dtype)


@misconception(
    "half_mask_multiplied",
    replaces="stable_attention",
    says="Your blocked scores become 0, as when you multiply by the mask or fill in 1e-9. exp(0) "
    "is 1, so they still get weight; only -inf becomes 0 in the softmax.",
    hint=4,
)
def half_mask_multiplied(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = _wide(q, k, v)
    scores = _scores(a, b) if mask is None else _scores(a, b) * mask
    return (_softmax(scores) @ c).to(v.dtype)


@misconception(
    "half_mask_ignored",
    replaces="stable_attention",
    says="Your mask has no effect: every query looks at all keys. Apply it before the softmax, and "
    "use the result: masked_fill returns a new tensor.",
    hint=4,
)
def half_mask_ignored(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = _wide(q, k, v)
    return (_softmax(_scores(a, b)) @ c).to(v.dtype)


@misconception(
    "half_scale_d_k",
    replaces="stable_attention",
    says="You divide the scores by d_k. Their standard deviation grows with the root of d_k only.",
    hint=4,
)
def half_scale_d_k(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = _wide(q, k, v)
    return (_softmax(_blocked(a @ b.mT / q.shape[-1], mask)) @ c).to(v.dtype)


@misconception(
    "half_no_scale",
    replaces="stable_attention",
    says="You leave out the scale. A wider dtype does not replace it: divide by sqrt(d_k), or use "
    "your scaled_scores.",
    hint=4,
)
def half_no_scale(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = _wide(q, k, v)
    return (_softmax(_blocked(a @ b.mT, mask)) @ c).to(v.dtype)


@misconception(
    "half_cosine",
    replaces="stable_attention",
    says="You normalise queries and keys so that nothing can overflow. But their lengths say how "
    "sure a head is: without them it is a different attention.",
    hint=2,
)
def half_cosine(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = _wide(q, k, v)
    a, b = (torch.nn.functional.normalize(x, dim=-1) for x in (a, b))
    return (_softmax(_blocked(_scores(a, b), mask)) @ c).to(v.dtype)


@misconception(
    "half_cut_off",
    replaces="stable_attention",
    says="No gradient gets back to q, k and v: detach(), .data and torch.no_grad() cut it off. "
    "`.to` and `.float()` let gradients through.",
    hint=6,
)
def half_cut_off(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    a, b, c = _wide(q.data, k.data, v.data)
    return (_softmax(_blocked(_scores(a, b), mask)) @ c).to(v.dtype)


@misconception(
    "half_float32_in_place",
    replaces="stable_attention",
    says="You scale q in place. For a float32 tensor float() and to() make no copy, so you change "
    "the caller's own q: make a new tensor.",
    hint=6,
)
def half_float32_in_place(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    dtype = q.dtype
    q, k, v = _wide(q, k, v)
    q /= math.sqrt(q.shape[-1])
    return (_softmax(_blocked(q @ k.mT, mask)) @ v).to(dtype)


@symptom(
    "half_scores",
    of="stable_attention",
    says="Your result is that of scores in half precision, where products beyond 65504 become inf "
    "and scores of some tens lose their digits. No later conversion brings these back: keep scores "
    "in float32 from the product of q and k to the softmax.",
    hint=3,
)
def half_scores(
    got: Tensor, expected: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> bool:
    if q.dtype not in (torch.float16, torch.bfloat16) or got.shape != expected.shape:
        return False
    root = math.sqrt(q.shape[-1])
    ways = (q @ k.mT / root, q @ k.mT * (1 / root), q / root @ k.mT, q * (1 / root) @ k.mT)
    right = _scores(q.double(), k.double())
    return not _is_result_of(right, got, v, mask) and any(
        _is_result_of(scores.double(), got, v, mask) for scores in ways
    )


@symptom(
    "half_blocked_too_high",
    of="stable_attention",
    says="Your result is that of blocked keys with the score -10000 or -65504, and real scores are "
    "lower here. Only -inf is below them all, and float32 holds it.",
    hint=4,
)
def half_blocked_too_high(
    got: Tensor, expected: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> bool:
    if mask is None or got.shape != expected.shape:
        return False
    scores = _scores(q.double(), k.double())
    sees = (mask != 0).expand(scores.shape).any(-1)  # a query that sees nothing is another matter

    room = scores.abs().max().item() * 2.0**-21  # a few roundings to float32, and so in a weight

    def is_of(low: float) -> bool:
        return bool(_near(_blocked(scores, mask, low), got, v, room)[sees].all())

    return not is_of(-math.inf) and (is_of(-10000.0) or is_of(-65504.0))


def _is_result_of(scores: Tensor, got: Tensor, v: Tensor, mask: Tensor | None) -> bool:
    """Whether a result is that of these scores."""
    scores = _blocked(scores, mask)
    maybe = torch.softmax(scores, -1) @ v.double()  # NaN if all of a row is -inf
    return bool((_near(scores, got, v) | (got.isnan() & maybe.isnan())).all())


def _near(scores: Tensor, got: Tensor, v: Tensor, room: float = 0.0) -> Tensor:
    """Where a result is that of these scores, up to a rounding of the weights and the result."""
    weights = _softmax(scores)
    want, size = weights @ v.double(), weights @ v.double().abs()
    return (got.double() - want).abs() <= (1.25 * torch.finfo(v.dtype).eps + room) * size
