import math

import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    """No key is ever copied: the group is an axis of the queries."""

    def __init__(self, d_model, num_heads, num_kv_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model} % {num_heads}")
        if num_heads % num_kv_heads:
            raise ValueError(f"{num_heads} % {num_kv_heads}")
        self.shape = (num_kv_heads, num_heads // num_kv_heads, d_model // num_heads)
        kv = num_kv_heads * self.shape[2]
        self.w_q = nn.Linear(d_model, d_model, bias)
        self.w_k = nn.Linear(d_model, kv, bias)
        self.w_v = nn.Linear(d_model, kv, bias)
        self.w_o = nn.Linear(d_model, d_model, bias)
        self.dropout = nn.Dropout(dropout)
        for layer in self.children():
            if isinstance(layer, nn.Linear):
                nn.init.xavier_normal_(layer.weight)
                if layer.bias is not None:
                    layer.bias.data.zero_()

    def forward(self, query, key, value, mask=None):
        n, g, d = self.shape
        q = self.w_q(query).unflatten(-1, (n, g, d))
        k = self.w_k(key).unflatten(-1, (n, d))
        v = self.w_v(value).unflatten(-1, (n, d))
        scores = torch.einsum("bqngd,bknd->bngqk", q, k).flatten(1, 2) / math.sqrt(d)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -math.inf)
        dead = scores.isneginf().all(-1, keepdim=True)
        weights = self.dropout(scores.masked_fill(dead, 0).softmax(-1).masked_fill(dead, 0))
        mixed = torch.einsum("bngqk,bknd->bqngd", weights.unflatten(1, (n, g)), v)
        return self.w_o(mixed.flatten(2)), weights
