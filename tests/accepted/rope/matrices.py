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
    c, s = angles.cos().to(x), angles.sin().to(x)
    M = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)
    return torch.einsum("tipq,bhtiq->bhtip", M, x.unflatten(-1, (-1, 2))).flatten(-2)


class RotaryMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True, base=10000.0):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("d_model")
        self.num_heads, self.d_k, self.base = num_heads, d_model // num_heads, base
        if self.d_k % 2:
            raise ValueError("d_k")
        for n in "qkvo":
            l = nn.Linear(d_model, d_model, bias=bias)
            nn.init.xavier_uniform_(l.weight)
            if bias:
                nn.init.zeros_(l.bias)
            setattr(self, "w_" + n, l)
        self.dropout = nn.Dropout(dropout)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.num_heads, self.d_k).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q = self.split(self.w_q(query))
        k = self.split(self.w_k(key))
        v = self.split(self.w_v(value))
        q = apply_rope(q, rope_angles(q.shape[2], self.d_k, self.base))
        k = apply_rope(k, rope_angles(k.shape[2], self.d_k, self.base))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        dead = torch.isneginf(scores).all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1).masked_fill(dead, 0.0)
        weights = self.dropout(weights)
        out = (weights @ v).transpose(1, 2).flatten(2)
        return self.w_o(out), weights
