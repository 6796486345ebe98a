import math

import torch
from torch import nn


def rope_angles(seq_len, d_k, base=10000.0, offset=0):
    if d_k % 2 != 0:
        raise ValueError(d_k)
    columns = []
    for i in range(d_k // 2):
        speed = math.pow(base, -2.0 * i / d_k)
        columns.append(speed * torch.arange(offset, offset + seq_len, dtype=torch.float32))
    return torch.stack(columns, dim=1)


def apply_rope(x, angles):
    """Angles and all in the dtype of x, as the simplest code has it."""
    angles = angles.to(device=x.device, dtype=x.dtype)
    features = list(x.unbind(-1))
    for i in range(angles.shape[1]):
        a, b = features[2 * i], features[2 * i + 1]
        c, s = torch.cos(angles[:, i]), torch.sin(angles[:, i])
        features[2 * i], features[2 * i + 1] = a * c - b * s, b * c + a * s
    return torch.stack(features, -1)


class RotaryMultiHeadAttention(nn.Module):
    """Head by head."""

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True, base=10000.0):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model")
        if d_model // num_heads % 2 != 0:
            raise ValueError("d_k")
        self.base, self.num_heads = base, num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.drop = nn.Dropout(dropout)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)

    def forward(self, query, key, value, mask=None):
        B, Tq, D = query.shape
        Tk, H = key.shape[1], self.num_heads
        d_k = D // H
        q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        allowed = None if mask is None else (mask != 0).expand(B, H, Tq, Tk)
        for_q, for_k = rope_angles(Tq, d_k, self.base), rope_angles(Tk, d_k, self.base)
        outputs, maps = [], []
        for h in range(H):
            part = slice(h * d_k, (h + 1) * d_k)
            q_h = apply_rope(q[:, None, :, part], for_q)[:, 0]
            k_h = apply_rope(k[:, None, :, part], for_k)[:, 0]
            scores = q_h @ k_h.transpose(1, 2) / math.sqrt(d_k)
            if allowed is not None:
                scores = scores.masked_fill(~allowed[:, h], -math.inf)
            dead = (scores == -math.inf).all(-1, keepdim=True)
            w = torch.softmax(scores.masked_fill(dead, 0.0), -1).masked_fill(dead, 0.0)
            w = self.drop(w)
            outputs.append(w @ v[..., part])
            maps.append(w)
        return self.w_o(torch.cat(outputs, -1)), torch.stack(maps, 1)
