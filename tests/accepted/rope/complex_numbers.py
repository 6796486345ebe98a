import math

import torch
from torch import nn


def rope_angles(seq_len, d_k, base=10000.0, offset=0):
    if d_k % 2:
        raise ValueError(f"d_k must be even, not {d_k}")
    freqs = 1.0 / (base ** (torch.arange(0, d_k, 2).float() / d_k))
    return torch.outer(torch.arange(offset, offset + seq_len).float(), freqs)


def apply_rope(x, angles):
    turn = torch.polar(torch.ones_like(angles), angles).to(x.device)
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    z = torch.view_as_complex(x.to(wide).reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(z * turn.to(z.dtype)).flatten(-2).to(x.dtype)


class RotaryMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True, base=10000.0):
        super().__init__()
        if d_model % num_heads != 0 or (d_model // num_heads) % 2 != 0:
            raise ValueError("d_k must be a whole, even number")
        self.num_heads, self.base = num_heads, base
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for name, parameter in self.named_parameters():
            (nn.init.xavier_uniform_ if name.endswith("weight") else nn.init.zeros_)(parameter)

    def heads(self, x, turned):
        B, T, D = x.shape
        x = x.view(B, T, self.num_heads, -1).transpose(1, 2)
        return apply_rope(x, rope_angles(T, x.shape[-1], self.base)) if turned else x

    def forward(self, query, key, value, mask=None):
        q = self.heads(self.w_q(query), True)
        k = self.heads(self.w_k(key), True)
        v = self.heads(self.w_v(value), False)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -math.inf)
        dead = scores.isneginf().all(-1, keepdim=True)
        weights = self.dropout(scores.masked_fill(dead, 0).softmax(-1).masked_fill(dead, 0))
        return self.w_o((weights @ v).transpose(1, 2).flatten(2)), weights
