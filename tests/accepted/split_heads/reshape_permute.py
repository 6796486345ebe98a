from __future__ import annotations

from torch import Tensor


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Größe [B, T, D] → [B, H, T, d_k]."""
    batch, tokens, features = x.size()
    d_k, rest = divmod(features, num_heads)
    if rest:
        raise ValueError("heads must divide the model's size")
    return x.reshape(batch, tokens, num_heads, d_k).permute(0, 2, 1, 3)
