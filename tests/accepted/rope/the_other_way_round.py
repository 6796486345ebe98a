import math
from typing import NamedTuple

import torch
from torch import nn


class Attention(NamedTuple):
    output: torch.Tensor
    weights: torch.Tensor


def rope_angles(seq_len: int, d_k: int, base: float = 10000.0, offset: int = 0) -> torch.Tensor:
    if d_k & 1:
        raise ValueError("odd")
    slow = torch.exp(torch.arange(0, d_k, 2) * (-math.log(base) / d_k))
    return torch.arange(offset, offset + seq_len).unsqueeze(1) * slow


def apply_rope(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Clockwise: scores still see nothing but the difference of two positions."""
    out = torch.empty_like(x)
    c, s = torch.cos(angles).to(x), torch.sin(angles).to(x)
    out[..., 0::2] = x[..., 0::2] * c + x[..., 1::2] * s
    out[..., 1::2] = x[..., 1::2] * c - x[..., 0::2] * s
    return out


class RotaryMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True, base=10000.0):
        super().__init__()
        if d_model % (2 * num_heads) != 0:
            raise ValueError("every head needs an even number of features")
        self.num_heads, self.d_k, self.base = num_heads, d_model // num_heads, base
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            layer.bias is None or nn.init.zeros_(layer.bias)

    def split(self, x):
        return x.reshape(len(x), -1, self.num_heads, self.d_k).permute(0, 2, 1, 3)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
        q = apply_rope(q, rope_angles(q.shape[2], self.d_k, self.base))
        k = apply_rope(k, rope_angles(k.shape[2], self.d_k, self.base))
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(self.d_k)
        if mask is None:
            weights = scores.softmax(-1)
        else:
            keep = mask.bool()
            top = scores.masked_fill(~keep, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
            e = (scores - top).masked_fill(~keep, -torch.inf).exp()
            weights = e / e.sum(-1, keepdim=True).clamp(min=1e-6)
        weights = self.dropout(weights)
        mixed = torch.einsum("bhqk,bhkd->bqhd", weights, v).flatten(2)
        return Attention(self.w_o(mixed), weights)
