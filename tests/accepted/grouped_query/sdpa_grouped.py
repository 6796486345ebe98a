import math

import torch
import torch.nn.functional as F
from torch import nn


class GroupedQueryAttention(nn.Module):
    """The output by the fused kernel, which knows groups; the weights beside it."""

    def __init__(self, d_model, num_heads, num_kv_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0 or num_heads % num_kv_heads != 0:
            raise ValueError("indivisible")
        self.num_heads, self.num_kv_heads, self.dropout = num_heads, num_kv_heads, dropout
        self.d_k = d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, self.d_k * num_kv_heads, bias=bias)
        self.w_v = nn.Linear(d_model, self.d_k * num_kv_heads, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        for name, parameter in self.named_parameters():
            (nn.init.xavier_uniform_ if name.endswith("weight") else nn.init.zeros_)(parameter)

    def forward(self, query, key, value, mask=None):
        B, Tq, D = query.shape
        q = self.w_q(query).view(B, Tq, -1, self.d_k).transpose(1, 2)
        k = self.w_k(key).view(B, key.shape[1], -1, self.d_k).transpose(1, 2)
        v = self.w_v(value).view(B, value.shape[1], -1, self.d_k).transpose(1, 2)
        allowed = None if mask is None else mask.bool().expand(B, self.num_heads, Tq, k.shape[2])
        p = self.dropout if self.training else 0.0
        heads = F.scaled_dot_product_attention(
            q, k, v, attn_mask=allowed, dropout_p=p, enable_gqa=True
        )
        if allowed is not None:
            heads = heads.masked_fill(~allowed.any(-1, keepdim=True), 0.0)
        shared = k.repeat_interleave(self.num_heads // self.num_kv_heads, 1)
        scores = q @ shared.transpose(2, 3) / math.sqrt(self.d_k)
        if allowed is not None:
            scores = scores.masked_fill(~allowed, -1e4).where(allowed.any(-1, True), 0.0)
        weights = scores.softmax(-1)
        if allowed is not None:
            weights = weights * allowed
        return self.w_o(heads.transpose(1, 2).reshape(B, Tq, D)), weights
