from typing import NamedTuple, Optional

import torch
from torch import Tensor, nn


class Result(NamedTuple):
    output: Tensor
    weights: Optional[Tensor] = None


class OptionalWeightsAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model} % {num_heads}")
        self.H = num_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            layer = nn.Linear(d_model, d_model, bias=bias)
            nn.init.xavier_normal_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)
            setattr(self, name, layer)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None, need_weights=True) -> Result:
        q = self.w_q(query).unflatten(-1, (self.H, -1))
        k = self.w_k(key).unflatten(-1, (self.H, -1))
        v = self.w_v(value).unflatten(-1, (self.H, -1))
        w = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        if mask is not None:
            keep = mask.bool().expand_as(w)
            some = keep.any(-1, keepdim=True)
            w = w.masked_fill(~keep & some, float("-inf")).softmax(-1) * some
        else:
            w = w.softmax(-1)
        used = self.drop(w)
        out = self.w_o(torch.einsum("bhqk,bkhd->bqhd", used, v).flatten(2))
        return Result(out, w) if need_weights else Result(out)
