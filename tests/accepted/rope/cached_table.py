import math

import torch
import torch.nn.functional as F
from torch import nn


def rope_angles(seq_len, d_k, base=10000.0, offset=0):
    if d_k % 2 != 0:
        raise ValueError("d_k must be even")
    inv_freq = torch.pow(torch.tensor(float(base)), -torch.arange(0, d_k, 2) / d_k)
    return torch.einsum("t,i->ti", torch.arange(offset, offset + seq_len).to(inv_freq), inv_freq)


def apply_rope(x, angles):
    sin, cos = angles.to(x.device).float().sin(), angles.to(x.device).float().cos()
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(3).type_as(x)


class RotaryMultiHeadAttention(nn.Module):
    """The table of angles is a buffer that is not saved; the output comes from the fused kernel."""

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True, base=10000.0):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model % num_heads")
        self.num_heads, self.dropout = num_heads, dropout
        self.register_buffer(
            "table", rope_angles(1024, d_model // num_heads, base), persistent=False
        )
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.constant_(layer.bias, 0)

    def forward(self, query, key, value, mask=None):
        B, Tq, D = query.shape
        q, k, v = (
            layer(x).view(B, x.shape[1], self.num_heads, -1).transpose(1, 2)
            for layer, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        q = apply_rope(q, self.table[: q.shape[2]])
        k = apply_rope(k, self.table[: k.shape[2]])
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
        allowed = None if mask is None else mask.bool().expand_as(scores)
        p = self.dropout if self.training else 0.0
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=p)
        if allowed is None:
            weights = scores.softmax(-1)
        else:
            empty = ~allowed.any(-1, keepdim=True)
            heads = heads.masked_fill(empty, 0.0)
            scores = scores.masked_fill(~allowed, -math.inf).masked_fill(empty, 0.0)
            weights = scores.softmax(-1).masked_fill(empty, 0.0)
        return self.w_o(heads.transpose(1, 2).reshape(B, Tq, D)), weights
