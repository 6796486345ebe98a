import math

import torch
from torch import nn


def rope_angles(seq_len, d_k, base=10000.0, offset=0):
    if d_k % 2 != 0:
        raise ValueError("odd d_k")
    speeds = base ** (-torch.arange(0, d_k, 2) / d_k)
    positions = torch.arange(offset, offset + seq_len)
    return torch.outer(positions.float(), speeds)


def apply_rope(x, angles):
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


class RotaryMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True, base=10000.0):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("num_heads")
        if d_model // num_heads % 2 != 0:
            raise ValueError("odd d_k")
        self.num_heads, self.base = num_heads, base
        self.d_k = d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, self.d_k)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
        q = apply_rope(q, rope_angles(q.shape[2], self.d_k, self.base))
        k = apply_rope(k, rope_angles(k.shape[2], self.d_k, self.base))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        dead = (scores == float("-inf")).all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(dead, 0.0), -1).masked_fill(dead, 0.0)
        weights = self.dropout(weights)
        return self.w_o((weights @ v).transpose(1, 2).flatten(2)), weights
