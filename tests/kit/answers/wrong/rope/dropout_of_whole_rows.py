# dropout drops all weights of a query at once
import math
import torch
from torch import nn
import torch.nn.functional as F

def rope_angles(seq_len, d_k, base=10000.0, offset=0):
    if d_k % 2:
        raise ValueError("odd")
    freq = base ** (-torch.arange(0, d_k, 2, dtype=torch.float32) / d_k)
    pos = torch.arange(offset, offset + seq_len, dtype=torch.float32)
    return torch.outer(pos, freq)


def apply_rope(x, angles):
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


class RotaryMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True, base=10000.0):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.d_model = d_model
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        if self.d_k % 2:
            raise ValueError("odd")
        self.base = base
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, query, key, value, mask=None):
        B, Tq, D = query.shape
        Tk = key.shape[1]
        q = self.w_q(query).view(B, Tq, self.num_heads, self.d_k).transpose(1, 2)
        k = self.w_k(key).view(B, Tk, -1, self.d_k).transpose(1, 2)
        v = self.w_v(value).view(B, Tk, -1, self.d_k).transpose(1, 2)
        q = apply_rope(q, rope_angles(Tq, self.d_k, self.base))
        k = apply_rope(k, rope_angles(Tk, self.d_k, self.base))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        dead = torch.isneginf(scores).all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1).masked_fill(dead, 0.0)
        weights = weights * self.dropout(torch.ones_like(weights[..., :1]))
        out = (weights @ v).transpose(1, 2).reshape(B, Tq, D)
        return self.w_o(out), weights
