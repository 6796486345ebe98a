from typing import NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Cache(NamedTuple):
    k: Tensor
    v: Tensor


class Result(NamedTuple):
    output: Tensor
    cache: Cache


class CachedSelfAttention(nn.Module):
    """SDPA with a mask of its own: is_causal would start at the upper left."""

    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        super().__init__()
        self.d_k, rest = divmod(d_model, num_heads)
        if rest:
            raise ValueError("d_model is not a multiple of num_heads")
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        for p in self.parameters():
            nn.init.xavier_uniform_(p) if p.dim() == 2 else nn.init.zeros_(p)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.d_k)).movedim(2, 1)

    def forward(self, x: Tensor, cache: Optional[Cache] = None) -> Result:
        now = Cache(self._heads(self.w_k(x)), self._heads(self.w_v(x)))
        if cache is not None:
            now = Cache._make(torch.cat(pair, dim=-2) for pair in zip(cache, now))
        T, N = now.k.shape[-2], x.shape[1]
        at = torch.arange(T, device=x.device)
        mask = at[None, :] <= at[T - N :, None]
        y = F.scaled_dot_product_attention(self._heads(self.w_q(x)), *now, attn_mask=mask)
        return Result(self.w_o(y.movedim(1, 2).flatten(2)), now)
