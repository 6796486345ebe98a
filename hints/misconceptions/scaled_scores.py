"""Known misconceptions of the stage scaled_scores: what people really write, and a sentence."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from grader.misconceptions import misconception, symptom

# The scale


@misconception(
    "scores_no_scale",
    replaces="scaled_scores",
    says="You don't scale. The sum of d_k products has a standard deviation that grows with "
    "sqrt(d_k); bring it back to about 1 or the softmax saturates.",
    hint=2,
)
def scores_no_scale(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1)


@misconception(
    "scores_by_d_k",
    replaces="scaled_scores",
    says="You divide by d_k, perhaps by its root twice: that is too much. The variance of the "
    "scores grows with d_k, but their standard deviation with its square root.",
    hint=2,
)
def scores_by_d_k(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / q.shape[-1]


@misconception(
    "scores_times_root",
    replaces="scaled_scores",
    says="You multiply by sqrt(d_k), which makes large scores larger still. "
    "The scale is there to shrink them.",
    hint=2,
)
def scores_times_root(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) * math.sqrt(q.shape[-1])


@misconception(
    "scores_root_of_d_model",
    replaces="scaled_scores",
    says="You take the root of d_model, which counts all heads together. One head's product sums "
    "over its own d_k features only, so take the root of d_k.",
    hint=2,
)
def scores_root_of_d_model(q: Tensor, k: Tensor) -> Tensor:
    d_model = q.shape[1] * q.shape[-1]
    return q @ k.transpose(-2, -1) / math.sqrt(d_model)


@misconception(
    "scores_root_of_tokens",
    replaces="scaled_scores",
    says="You take the root of the number of tokens, the last axis but one. The product sums over "
    "features, so take the size of the last axis.",
    hint=2,
)
def scores_root_of_tokens(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / math.sqrt(q.size(-2))


@misconception(
    "scores_root_of_keys",
    replaces="scaled_scores",
    says="You take the root of the number of keys, the last axis of the scores. The product sums "
    "over features, so take the size of the last axis of q.",
    hint=2,
)
def scores_root_of_keys(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / math.sqrt(k.size(-2))


@misconception(
    "scores_root_of_heads",
    replaces="scaled_scores",
    says="You take the root of the number of heads, axis 1 of [B, H, T, d_k]. Take the size of "
    "one head instead, the last axis.",
    hint=2,
)
def scores_root_of_heads(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / math.sqrt(q.size(1))


@misconception(
    "scores_by_eight",
    replaces="scaled_scores",
    says="You divide by 8 whatever the size of a head is. 8 is the root of 64, the paper's d_k: "
    "take the root of the last axis of q.",
    hint=2,
)
def scores_by_eight(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / 8


@misconception(
    "scores_power_precedence",
    replaces="scaled_scores",
    says="In Python `**` binds before `/`, so `d_k**1/2` is half of d_k and not its root. Write "
    "the exponent as 0.5, or use math.sqrt.",
    hint=4,
)
def scores_power_precedence(q: Tensor, k: Tensor) -> Tensor:
    scale = q.shape[-1] ** 1 / 2
    return q @ k.transpose(-2, -1) / scale


@misconception(
    "scores_power_precedence_inline",
    replaces="scaled_scores",
    says="You divide by d_k and then by 2: `**` binds before `/` in Python, so that is what `/ "
    "d_k**1/2` does. Write the exponent as 0.5, or use math.sqrt.",
    hint=4,
)
def scores_power_precedence_inline(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 1 / 2


@misconception(
    "scores_rounded_root",
    replaces="scaled_scores",
    says="You round the root of d_k down to a whole number, which is only right for 1, 4, 9, 16 "
    "and so on. Keep it as a float.",
    hint=4,
)
def scores_rounded_root(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / int(math.sqrt(q.shape[-1]))


# The product


@misconception(
    "scores_no_transpose",
    replaces="scaled_scores",
    says="You multiply q by k as it is, so features of q meet tokens of k. Transpose k's last two "
    "axes, so that features meet features.",
    hint=3,
)
def scores_no_transpose(q: Tensor, k: Tensor) -> Tensor:
    return torch.matmul(q, k) / math.sqrt(q.size(-1))


@misconception(
    "scores_heads_transposed",
    replaces="scaled_scores",
    says="You swap axes 1 and 2 of k, its heads and tokens. That fits a 3-D tensor, but this one "
    "has four axes: count from the end, and swap the last two.",
    hint=4,
)
def scores_heads_transposed(q: Tensor, k: Tensor) -> Tensor:
    return torch.matmul(q, k.transpose(1, 2)) / math.sqrt(q.size(-1))


@misconception(
    "scores_key_reshaped",
    replaces="scaled_scores",
    says="You give k the shape [.., d_k, Tk] by a reshape, which keeps the numbers in their old "
    "order and mixes tokens with features. Swap the two axes instead.",
    hint=4,
)
def scores_key_reshaped(q: Tensor, k: Tensor) -> Tensor:
    B, H, Tk, d_k = k.shape
    return torch.matmul(q, k.reshape(B, H, d_k, Tk)) / math.sqrt(d_k)


@misconception(
    "scores_roles_swapped",
    replaces="scaled_scores",
    says="Your rows are keys and your columns are queries. Each query asks all keys, so queries "
    "are the rows: [B, H, Tq, Tk].",
    hint=1,
)
def scores_roles_swapped(q: Tensor, k: Tensor) -> Tensor:
    return k @ q.transpose(-2, -1) / math.sqrt(q.shape[-1])


@misconception(
    "scores_keys_added_up",
    replaces="scaled_scores",
    says="Each head compares its queries with the keys of all heads added up. In einsum a letter "
    "that only one input has is summed away: give the heads of q and k the same one.",
    hint=3,
)
def scores_keys_added_up(q: Tensor, k: Tensor) -> Tensor:
    return torch.einsum("bhid,bgjd->bhij", q, k) / math.sqrt(q.shape[-1])


@misconception(
    "scores_sequences_added_up",
    replaces="scaled_scores",
    says="Each query meets the keys of all sequences added up. In einsum a letter that only one "
    "input has is summed away: give the batch axes of q and k the same one.",
    hint=3,
)
def scores_sequences_added_up(q: Tensor, k: Tensor) -> Tensor:
    return torch.einsum("bhid,chjd->bhij", q, k) / math.sqrt(q.shape[-1])


@misconception(
    "scores_of_all_pairs",
    replaces="scaled_scores",
    says="You multiply each query by the keys of every head of every sequence, as torch.inner and "
    "torch.tensordot do, so the result has six axes. matmul keeps sequences and heads apart.",
    hint=4,
)
def scores_of_all_pairs(q: Tensor, k: Tensor) -> Tensor:
    return torch.inner(q, k) / math.sqrt(q.shape[-1])


@misconception(
    "scores_cosine",
    replaces="scaled_scores",
    says="You bring q and k to length 1, so only their angle counts (cosine similarity). In "
    "attention a longer vector counts for more: leave q and k as they are.",
    hint=2,
)
def scores_cosine(q: Tensor, k: Tensor) -> Tensor:
    return normalize(q, dim=-1) @ normalize(k, dim=-1).transpose(-2, -1)


@misconception(
    "scores_cosine_scaled",
    replaces="scaled_scores",
    says="You bring q and k to length 1 before you multiply and scale, so only their angle "
    "counts. In attention a longer vector counts for more: leave q and k as they are.",
    hint=2,
)
def scores_cosine_scaled(q: Tensor, k: Tensor) -> Tensor:
    cosine = normalize(q, dim=-1) @ normalize(k, dim=-1).transpose(-2, -1)
    return cosine / math.sqrt(q.shape[-1])


# Too much, or too little, is done


@misconception(
    "scores_softmaxed",
    replaces="scaled_scores",
    says="You already take the softmax here. Return the scores themselves: the mask comes between "
    "them and the softmax.",
)
def scores_softmaxed(q: Tensor, k: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return torch.softmax(scores, dim=-1)


@misconception(
    "scores_of_queries_alone",
    replaces="scaled_scores",
    says="You multiply q by itself and never use k. A query asks the keys: q k^T.",
)
def scores_of_queries_alone(q: Tensor, k: Tensor) -> Tensor:
    return q @ q.transpose(-2, -1) / math.sqrt(q.shape[-1])


@misconception(
    "scores_key_detached",
    replaces="scaled_scores",
    says="You detach k from the graph, so no gradient reaches the keys and they never learn. Work "
    "with k itself.",
)
def scores_key_detached(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.detach().transpose(-2, -1) / math.sqrt(q.shape[-1])


@misconception(
    "scores_query_in_place",
    replaces="scaled_scores",
    says="You scale q in place, so the caller's own tensor changes. "
    "Make a new tensor instead of writing into the one you were given.",
)
def scores_query_in_place(q: Tensor, k: Tensor) -> Tensor:
    q /= math.sqrt(q.shape[-1])
    return q @ k.transpose(-2, -1)


@misconception(
    "scores_float32",
    replaces="scaled_scores",
    says="You convert q and k to float32 and leave the scores in it. The result must have the "
    "dtype of q and k.",
)
def scores_float32(q: Tensor, k: Tensor) -> Tensor:
    return q.float() @ k.float().transpose(-2, -1) / math.sqrt(q.shape[-1])


# Another measure than the dot product


@misconception(
    "scores_negative_distance",
    replaces="scaled_scores",
    says="You measure how far a query and a key lie apart. The score is their dot product, so a "
    "longer vector counts for more.",
)
def scores_negative_distance(q: Tensor, k: Tensor) -> Tensor:
    return -torch.cdist(q, k) / math.sqrt(q.shape[-1])


@misconception(
    "scores_negative_square_distance",
    replaces="scaled_scores",
    says="You take the squared distance of a query and a key. The score is their dot product, so "
    "a longer vector counts for more.",
)
def scores_negative_square_distance(q: Tensor, k: Tensor) -> Tensor:
    apart = q[..., :, None, :] - k[..., None, :, :]
    return -apart.square().sum(dim=-1) / math.sqrt(q.shape[-1])


@misconception(
    "scores_floored",
    replaces="scaled_scores",
    says="You round the scores down to whole numbers, as // does. Keep their fractions; they carry "
    "the gradient, too.",
)
def scores_floored(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) // math.sqrt(q.shape[-1])


# Two at once


@misconception(
    "scores_key_reshaped_no_scale",
    replaces="scaled_scores",
    says="Two mistakes at once: your reshape of k mixes its tokens with its features, and nothing "
    "is scaled. Swap the axes instead, then divide by the root of d_k.",
    hint=4,
)
def scores_key_reshaped_no_scale(q: Tensor, k: Tensor) -> Tensor:
    B, H, Tk, d_k = k.shape
    return torch.matmul(q, k.reshape(B, H, d_k, Tk))


@misconception(
    "scores_roles_swapped_no_scale",
    replaces="scaled_scores",
    says="Two mistakes at once: your rows are keys and your columns are queries, and nothing is "
    "scaled. Put the queries first, then divide by the root of d_k.",
    hint=1,
)
def scores_roles_swapped_no_scale(q: Tensor, k: Tensor) -> Tensor:
    return k @ q.transpose(-2, -1)


# How a result looks beside the right one


@symptom(
    "scores_clipped",
    of="scaled_scores",
    says="Your scores stop at a limit: larger or smaller ones are set to it, and all others are "
    "right. A score may be of any size; the softmax deals with large ones.",
)
def scores_clipped(got: Tensor, expected: Tensor, q: Tensor, k: Tensor) -> bool:
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    low, high = got.min(), got.max()
    inside = (got > low) & (got < high)
    beyond = [(expected > high + 0.1).sum(), (low - 0.1 > expected).sum()]
    if not inside.any() or max(beyond) < 2:
        return False  # a single wrong score may be the largest by chance
    return torch.allclose(got, expected.clamp(low, high), rtol=1e-3, atol=1e-5)


@symptom(
    "scores_sum_to_one",
    of="scaled_scores",
    says="Each row of your result sums to 1, as after a softmax. Return the scores themselves: the "
    "mask comes between them and the softmax.",
)
def scores_sum_to_one(got: Tensor, expected: Tensor, q: Tensor, k: Tensor) -> bool:
    rows = got.sum(-1)
    is_share = got.shape == expected.shape and bool((got >= 0).all())
    return is_share and torch.allclose(rows, torch.ones_like(rows), rtol=1e-3)
