"""Known misconceptions of the stage concat_heads: what people really write, and a sentence."""

from __future__ import annotations

import torch
from torch import Tensor

from grader.misconceptions import misconception

# The right shape, the wrong numbers


@misconception(
    "concat_no_transpose",
    replaces="concat_heads",
    says="You reshape while the heads still come before the tokens, so a row mixes several tokens "
    "of one head. Swap heads and tokens first.",
    hint=2,
)
def concat_no_transpose(x: Tensor) -> Tensor:
    B, H, T, d_k = x.shape
    return x.reshape(B, T, H * d_k)


@misconception(
    "concat_view_no_transpose",
    replaces="concat_heads",
    says="You view while the heads still come before the tokens, so a row mixes several tokens of "
    "one head. Swap heads and tokens first.",
    hint=2,
)
def concat_view_no_transpose(x: Tensor) -> Tensor:
    B, H, T, d_k = x.shape
    return x.view(B, T, H * d_k)


@misconception(
    "concat_interleaved",
    replaces="concat_heads",
    says="You put all heads' first features side by side, then their second ones. Keep each "
    "head's d_k features together, one head after the other.",
    hint=2,
)
def concat_interleaved(x: Tensor) -> Tensor:
    B, H, T, d_k = x.shape
    return x.permute(0, 2, 3, 1).reshape(B, T, H * d_k)


@misconception(
    "concat_wrong_axes_swapped",
    replaces="concat_heads",
    says="You swap the last two axes, tokens and features, before you merge. The two axes to swap "
    "are heads and tokens.",
    hint=2,
)
def concat_wrong_axes_swapped(x: Tensor) -> Tensor:
    B, H, T, d_k = x.shape
    return x.transpose(-2, -1).reshape(B, T, H * d_k)


# The wrong shape


@misconception(
    "concat_not_merged",
    replaces="concat_heads",
    says="You bring the tokens forward but leave heads and features as two axes. "
    "Merge these two into one of size D.",
    hint=2,
)
def concat_not_merged(x: Tensor) -> Tensor:
    return x.transpose(1, 2).contiguous()  # (B, T, H, d_k)


@misconception(
    "concat_stacked",
    replaces="concat_heads",
    says="You stack the heads along a new last axis. Concatenating puts them one after the other "
    "along the feature axis they already have.",
    hint=2,
)
def concat_stacked(x: Tensor) -> Tensor:
    return torch.stack(x.unbind(dim=1), dim=-1)  # (B, T, d_k, H)


@misconception(
    "concat_along_tokens",
    replaces="concat_heads",
    says="You put the heads one after the other along the tokens, as if the sequence were H times "
    "as long. Put them side by side along the features.",
    hint=2,
)
def concat_along_tokens(x: Tensor) -> Tensor:
    return torch.cat(x.unbind(dim=1), dim=1)  # (B, H * T, d_k)


@misconception(
    "concat_one_head_wide",
    replaces="concat_heads",
    says="Your rows are d_k wide, the width of one head, so each token is spread over H rows. A "
    "token's row is as wide as all heads together.",
    hint=4,
)
def concat_one_head_wide(x: Tensor) -> Tensor:
    B, _, _, d_k = x.shape
    return x.transpose(1, 2).contiguous().view(B, -1, d_k)  # (B, T * H, d_k)


@misconception(
    "concat_averaged",
    replaces="concat_heads",
    says="You average the heads, so what each one found is lost. Concatenate them instead: that "
    "keeps everything.",
    hint=2,
)
def concat_averaged(x: Tensor) -> Tensor:
    return x.mean(dim=1)  # (B, T, d_k)


@misconception(
    "concat_averaged_and_repeated",
    replaces="concat_heads",
    says="You average the heads and repeat the average H times, so what each one found is lost. "
    "Concatenate them instead: that keeps everything.",
    hint=2,
)
def concat_averaged_and_repeated(x: Tensor) -> Tensor:
    return x.mean(dim=1).repeat(1, 1, x.shape[1])  # (B, T, D)


@misconception(
    "concat_summed",
    replaces="concat_heads",
    says="You add the heads up, so what each one found is lost. Concatenate them instead: that "
    "keeps everything.",
    hint=2,
)
def concat_summed(x: Tensor) -> Tensor:
    return x.sum(dim=1)  # (B, T, d_k)


@misconception(
    "concat_over_batch",
    replaces="concat_heads",
    says="You join the sequences of the batch instead of the heads. A loop over a tensor runs "
    "along its first axis, the batch; the heads are axis 1.",
)
def concat_over_batch(x: Tensor) -> Tensor:
    return torch.cat(list(x), dim=-1)  # (H, T, B * d_k)


@misconception(
    "concat_tokens_before_batch",
    replaces="concat_heads",
    says="You return [T, B, D], as nn.MultiheadAttention does by default. "
    "Here the batch is the first axis.",
    hint=4,
)
def concat_tokens_before_batch(x: Tensor) -> Tensor:
    B, H, T, d_k = x.shape
    return x.permute(2, 0, 1, 3).reshape(T, B, H * d_k)


@misconception(
    "concat_unfolded_as_heads_first",
    replaces="concat_heads",
    says="You take the first two axes as [H, B], as when heads and batch were folded with the "
    "heads first. Here they are [B, H], so sequences and heads are mixed.",
    hint=4,
)
def concat_unfolded_as_heads_first(x: Tensor) -> Tensor:
    B, H, T, d_k = x.shape
    x = x.reshape(H, B, T, d_k).permute(1, 2, 0, 3)  # (B, T, H, d_k)
    return x.reshape(B, T, H * d_k)


@misconception(
    "concat_sizes_after_transpose",
    replaces="concat_heads",
    says="Your H is T and your T is H, as when the sizes are read in the wrong order, or after the "
    "axes are swapped. x comes in as [B, H, T, d_k].",
    hint=4,
)
def concat_sizes_after_transpose(x: Tensor) -> Tensor:
    x = x.transpose(1, 2)
    B, H, T, d_k = x.shape
    return x.reshape(B, T, H * d_k)  # (B, H, T * d_k)


# Memory and dtype


@misconception(
    "concat_view_after_transpose",
    replaces="concat_heads",
    says="After the transpose the numbers are no longer in reading order in memory, so view "
    "fails. Call contiguous in between, or use reshape, which copies when it must.",
    hint=3,
)
def concat_view_after_transpose(x: Tensor) -> Tensor:
    B, H, T, d_k = x.shape
    return x.transpose(1, 2).view(B, T, H * d_k)


@misconception(
    "concat_float32",
    replaces="concat_heads",
    says="Your result is float32 whatever the dtype of x: float() does that, and so does a new "
    "tensor made without dtype=. Rearrange x itself, or pass its dtype and device on.",
)
def concat_float32(x: Tensor) -> Tensor:
    B, H, T, d_k = x.shape
    out = torch.zeros(B, T, H * d_k)
    for h in range(H):
        out[:, :, h * d_k : (h + 1) * d_k] = x[:, h]
    return out


# The caller's own tensor


@misconception(
    "concat_written_over",
    replaces="concat_heads",
    says="When no gradient is needed, you write the tokens into the memory of x. x belongs to the "
    "caller, who then finds other numbers in it: return a new tensor.",
    hint=4,
)
def concat_written_over(x: Tensor) -> Tensor:
    by_token = x.transpose(1, 2).flatten(2)
    if x.requires_grad or not x.is_contiguous():
        return by_token
    return x.copy_(by_token.reshape(x.shape)).view(by_token.shape)
