from typing import Any

import torch
from torch import nn


class Mask(nn.Module):
    """Holds the mask, so the buffer is called mask.whole."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("whole", torch.ones(size, size, dtype=torch.int64).tril())

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        T = scores.shape[-1]
        return torch.where(self.whole[:T, :T] == 1, scores, -torch.inf)


class CausalSelfAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_size: int, num_heads: int, *more: Any, **options: Any
    ) -> None:
        super().__init__()
        self._build(d_in, d_out, num_heads, *more, **options)
        self.context_size = context_size
        self.mask = Mask(context_size)

    def _build(self, d_in, d_out, num_heads, dropout=0.0, qkv_bias=False):
        if d_out // num_heads * num_heads != d_out:
            raise ValueError(f"{num_heads=} does not divide {d_out=}")
        self.num_heads = num_heads
        for role in "qkvo":
            layer = nn.Linear(
                d_out if role == "o" else d_in, d_out, bias=True if role == "o" else qkv_bias
            )
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.constant_(layer.bias, 0.0)
            setattr(self, f"w_{role}", layer)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > self.context_size:
            raise ValueError("x")
        q, k, v = (
            layer(x).view(*x.shape[:2], self.num_heads, -1).movedim(2, 1)
            for layer in (self.w_q, self.w_k, self.w_v)
        )
        scores = (q[..., :, None, :] * k[..., None, :, :]).sum(-1) / q.size(-1) ** 0.5
        shares = self.dropout(torch.softmax(self.mask(scores), -1))
        return self.w_o((shares @ v).movedim(1, 2).flatten(2))
