"""Known misconceptions of the stage split_heads: what people really write, and a sentence."""

from __future__ import annotations

import torch
from torch import Tensor

from grader.misconceptions import misconception


def _head_width(x: Tensor, num_heads: int) -> int:
    """d_k, checked as the contract asks, so that each mistake below stands alone."""
    if x.shape[-1] % num_heads != 0:
        raise ValueError(f"{x.shape[-1]} features do not divide into {num_heads} heads")
    return x.shape[-1] // num_heads


# The order of the axes


@misconception(
    "split_no_transpose",
    replaces="split_heads",
    says="You cut the features into heads but leave the token axis before the head axis. Swap the "
    "two, so that each head holds a whole sequence.",
    hint=4,
)
def split_no_transpose(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    return x.view(B, T, num_heads, _head_width(x, num_heads))  # (B, T, H, d_k)


@misconception(
    "split_view_scrambles",
    replaces="split_heads",
    says="Your shape is right, but a view straight to [B, H, T, d_k] only relabels memory: a head "
    "gets the next T * d_k numbers, not its part of every token. Cut the feature axis first, then "
    "swap two axes.",
    hint=3,
)
def split_view_scrambles(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    return x.view(B, num_heads, T, _head_width(x, num_heads))


@misconception(
    "split_reshape_scrambles",
    replaces="split_heads",
    says="Your shape is right, but a reshape straight to [B, H, T, d_k] keeps the numbers in "
    "their order: a head gets the next T * d_k numbers, not its part of every token. Cut the "
    "feature axis first, then swap two axes.",
    hint=3,
)
def split_reshape_scrambles(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    return x.reshape(B, num_heads, T, _head_width(x, num_heads))


@misconception(
    "split_turned_reshape",
    replaces="split_heads",
    says="You swap tokens and features, and then reshape to [B, H, T, d_k], which does not swap "
    "them back: tokens and features are mixed. Cut the feature axis first, then swap tokens and "
    "heads.",
    hint=3,
)
def split_turned_reshape(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    return x.transpose(1, 2).reshape(B, num_heads, T, _head_width(x, num_heads))


@misconception(
    "split_wrong_axes_swapped",
    replaces="split_heads",
    says="You swap the last two axes after cutting the features, so d_k and H change places. The "
    "two axes to swap are tokens and heads.",
    hint=4,
)
def split_wrong_axes_swapped(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    return x.view(B, T, num_heads, _head_width(x, num_heads)).transpose(-2, -1)  # (B, T, d_k, H)


@misconception(
    "split_keys_turned",
    replaces="split_heads",
    says="You also swap tokens and features, and return [B, H, d_k, T]. Only the keys need that, "
    "and only for the scores; here every head keeps its tokens before its features.",
    hint=4,
)
def split_keys_turned(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    return x.view(B, T, num_heads, _head_width(x, num_heads)).permute(0, 2, 3, 1)


@misconception(
    "split_heads_first",
    replaces="split_heads",
    says="You put the head axis before the batch axis. Keep the batch first: [B, H, T, d_k].",
    hint=4,
)
def split_heads_first(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    return x.view(B, T, num_heads, _head_width(x, num_heads)).permute(2, 0, 1, 3)  # (H, B, T, d_k)


@misconception(
    "split_folded_batch",
    replaces="split_heads",
    says="You fold the heads into the batch axis, [B·H, T, d_k]. Some code does so, but here "
    "heads keep an axis of their own: [B, H, T, d_k].",
    hint=4,
)
def split_folded_batch(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    d_k = _head_width(x, num_heads)
    x = x.view(B, T, num_heads, d_k).transpose(1, 2)
    return x.reshape(B * num_heads, T, d_k)


@misconception(
    "split_folded_by_view",
    replaces="split_heads",
    says="You reshape straight to [B·H, T, d_k], which mixes tokens between the heads and gives "
    "the heads no axis. Cut the feature axis in two, then swap tokens and heads: [B, H, T, d_k].",
    hint=3,
)
def split_folded_by_view(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    return x.reshape(B * num_heads, T, _head_width(x, num_heads))


@misconception(
    "split_chunks_in_batch",
    replaces="split_heads",
    says="You join the heads along the batch axis, [H·B, T, d_k]. Give them an axis of their own, "
    "the second: torch.stack does that, torch.cat does not.",
    hint=4,
)
def split_chunks_in_batch(x: Tensor, num_heads: int) -> Tensor:
    _head_width(x, num_heads)
    return torch.cat(x.chunk(num_heads, dim=-1), dim=0)


@misconception(
    "split_unfolded_as_batch_first",
    replaces="split_heads",
    says="You fold heads and batch into one axis with the heads first, [H·B, T, d_k], and take "
    "them apart with the batch first, so sequences and heads are mixed.",
    hint=4,
)
def split_unfolded_as_batch_first(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    x = x.view(B, T, num_heads, _head_width(x, num_heads)).permute(2, 0, 1, 3)  # (H, B, T, d_k)
    return x.reshape(B, num_heads, T, -1)


@misconception(
    "split_tokens_before_batch",
    replaces="split_heads",
    says="You read the input as [T, B, D], as nn.MultiheadAttention does by default, so batch and "
    "tokens change places. Here the batch is the first axis.",
    hint=4,
)
def split_tokens_before_batch(x: Tensor, num_heads: int) -> Tensor:
    T, B, _ = x.shape
    return x.view(T, B, num_heads, _head_width(x, num_heads)).permute(1, 2, 0, 3)


# Which features belong to which head


@misconception(
    "split_interleaved",
    replaces="split_heads",
    says="Your heads take every H-th feature, as when D is cut into d_k rows of H. A head takes "
    "d_k neighbouring features: which of H and d_k must then be the outer size?",
    hint=2,
)
def split_interleaved(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    return x.view(B, T, _head_width(x, num_heads), num_heads).permute(0, 3, 1, 2)


@misconception(
    "split_interleaved_no_transpose",
    replaces="split_heads",
    says="Two mistakes at once: you cut D into d_k groups of H instead of H groups of d_k, and the "
    "tokens still come before the heads. Fix the cut first, then move the head axis.",
    hint=2,
)
def split_interleaved_no_transpose(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    return x.view(B, T, _head_width(x, num_heads), num_heads)


@misconception(
    "split_count_as_width",
    replaces="split_heads",
    says="You use num_heads as the width of a head, so you get d_k heads with H features each. "
    "num_heads says how many pieces, not how wide a piece is.",
    hint=1,
)
def split_count_as_width(x: Tensor, num_heads: int) -> Tensor:
    _head_width(x, num_heads)
    return torch.stack(torch.split(x, num_heads, dim=-1), dim=1)  # (B, d_k, T, H)


@misconception(
    "split_cuts_tokens",
    replaces="split_heads",
    says="You divide the tokens among the heads. Every head sees all tokens; divide the features "
    "of each token instead.",
    hint=2,
)
def split_cuts_tokens(x: Tensor, num_heads: int) -> Tensor:
    _head_width(x, num_heads)
    return torch.stack(x.chunk(num_heads, dim=1), dim=1)  # (B, H, T / H, D)


# The check of the sizes, and the dtype


@misconception(
    "split_no_value_error",
    replaces="split_heads",
    says="Sizes that do not divide end in a RuntimeError, torch's or your own. Check first that "
    "num_heads divides D, and raise a ValueError that says what is wrong.",
    hint=5,
)
def split_no_value_error(x: Tensor, num_heads: int) -> Tensor:
    B, T, D = x.shape
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)


@misconception(
    "split_assert",
    replaces="split_heads",
    says="You refuse sizes with an AssertionError, as assert does, which vanishes under python -O. "
    "A wrong argument deserves a ValueError.",
    hint=5,
)
def split_assert(x: Tensor, num_heads: int) -> Tensor:
    B, T, D = x.shape
    assert D % num_heads == 0, "D must be divisible by num_heads"
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)


@misconception(
    "split_drops_features",
    replaces="split_heads",
    says="When num_heads does not divide D, you silently drop the features left over. Losing data "
    "is worse than an error: raise a ValueError.",
    hint=5,
)
def split_drops_features(x: Tensor, num_heads: int) -> Tensor:
    d_k = x.shape[-1] // num_heads
    heads = [x[..., h * d_k : (h + 1) * d_k] for h in range(num_heads)]
    return torch.stack(heads, dim=1)


@misconception(
    "split_remainder_turned_round",
    replaces="split_heads",
    says="Your check takes the remainder the wrong way round and refuses sizes that are fine. You "
    "need the remainder of D divided by num_heads.",
    hint=5,
)
def split_remainder_turned_round(x: Tensor, num_heads: int) -> Tensor:
    B, T, D = x.shape
    if num_heads % D != 0:
        raise ValueError("D must be divisible by num_heads")
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)


@misconception(
    "split_float32",
    replaces="split_heads",
    says="Your heads are float32 whatever the dtype of x: float() does that, and so does a new "
    "tensor made without dtype=. Rearrange x without a copy, or pass its dtype and device on.",
)
def split_float32(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    d_k = _head_width(x, num_heads)
    heads = torch.zeros(B, num_heads, T, d_k)
    for h in range(num_heads):
        heads[:, h] = x[:, :, h * d_k : (h + 1) * d_k]
    return heads


# Two at once


@misconception(
    "split_view_scrambles_no_value_error",
    replaces="split_heads",
    says="Two mistakes at once: a view straight to [B, H, T, d_k] mixes tokens between the heads, "
    "and sizes that do not divide raise no ValueError. Cut the features, move the head axis, and "
    "check the sizes first.",
    hint=3,
)
def split_view_scrambles_no_value_error(x: Tensor, num_heads: int) -> Tensor:
    B, T, D = x.shape
    return x.view(B, num_heads, T, D // num_heads)


@misconception(
    "split_reshape_scrambles_no_value_error",
    replaces="split_heads",
    says="Two mistakes at once: a reshape straight to [B, H, T, d_k] mixes tokens between the "
    "heads, and sizes that do not divide raise no ValueError. Cut the features, move the head "
    "axis, and check the sizes first.",
    hint=3,
)
def split_reshape_scrambles_no_value_error(x: Tensor, num_heads: int) -> Tensor:
    B, T, D = x.shape
    return x.reshape(B, num_heads, T, D // num_heads)


@misconception(
    "split_no_transpose_no_value_error",
    replaces="split_heads",
    says="Two mistakes at once: the token axis still comes before the head axis, and sizes that do "
    "not divide raise no ValueError. Swap the axes, and check the sizes first.",
    hint=4,
)
def split_no_transpose_no_value_error(x: Tensor, num_heads: int) -> Tensor:
    B, T, D = x.shape
    return x.view(B, T, num_heads, D // num_heads)


# The caller's own tensor


@misconception(
    "split_written_over",
    replaces="split_heads",
    says="When no gradient is needed, you write the heads into the memory of x. x belongs to the "
    "caller, who then finds other numbers in it: return a new tensor.",
    hint=4,
)
def split_written_over(x: Tensor, num_heads: int) -> Tensor:
    B, T, _ = x.shape
    heads = x.reshape(B, T, num_heads, _head_width(x, num_heads)).transpose(1, 2)
    if x.requires_grad or not x.is_contiguous():
        return heads
    return x.copy_(heads.reshape(x.shape)).view(heads.shape)
