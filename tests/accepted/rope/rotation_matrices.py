import math

import torch
from torch import nn


def rope_angles(seq_len, d_k, base=10000.0, offset=0):
    if d_k % 2 == 1:
        raise ValueError("a feature would be left over")
    rows = [
        [(offset + t) * base ** (-2 * i / d_k) for i in range(d_k // 2)] for t in range(seq_len)
    ]
    return torch.tensor(rows, dtype=torch.float32).view(seq_len, d_k // 2)


def apply_rope(x, angles):
    c, s = angles.cos(), angles.sin()
    turns = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2).to(x)
    pairs = x.unflatten(-1, (-1, 2))  # (B, H, T, d_k / 2, 2)
    return torch.einsum("tirc,bhtic->bhtir", turns, pairs).flatten(-2)


class RotaryMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True, base=10000.0):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("heads")
        self.head_dim = d_model // num_heads
        if self.head_dim % 2:
            raise ValueError("odd")
        self.base = base
        self.w_q, self.w_k, self.w_v, self.w_o = (
            nn.Linear(d_model, d_model, bias) for _ in range(4)
        )
        self.dropout = nn.Dropout(dropout)
        self.apply(self.start)

    @staticmethod
    def start(layer):
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, query, key, value, mask=None):
        B, Tq, D = query.shape
        Tk = key.shape[1]
        d, H = self.head_dim, D // self.head_dim

        def fold(x):  # (B * H, T, d)
            return x.reshape(B, -1, H, d).transpose(1, 2).reshape(B * H, -1, d)

        q = fold(self.w_q(query)).unsqueeze(0)
        k = fold(self.w_k(key)).unsqueeze(0)
        q = apply_rope(q, rope_angles(Tq, d, self.base))[0]
        k = apply_rope(k, rope_angles(Tk, d, self.base))[0]
        scores = torch.bmm(q, k.mT).view(B, H, Tq, Tk) / math.sqrt(d)
        if mask is not None:
            blocked = (mask == 0).expand_as(scores)
            empty = blocked.all(-1, keepdim=True)
            weights = scores.masked_fill(blocked & ~empty, -math.inf).softmax(-1) * ~empty
        else:
            weights = scores.softmax(-1)
        weights = self.dropout(weights)
        out = torch.bmm(weights.flatten(0, 1), fold(self.w_v(value)))
        return self.w_o(out.view(B, H, Tq, d).transpose(1, 2).reshape(B, Tq, D)), weights
