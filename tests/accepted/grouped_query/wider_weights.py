import math

import torch
import torch.nn.functional as F
from torch import nn


class GroupedQueryAttention(nn.Module):
    """The rows of w_k and w_v are shared out before the projection, not the keys after it."""

    def __init__(self, d_model, num_heads, num_kv_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("num_heads")
        if num_heads % num_kv_heads != 0:
            raise ValueError("num_kv_heads")
        self.num_heads = num_heads
        d_k = d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, num_kv_heads * d_k, bias=bias)
        self.w_v = nn.Linear(d_model, num_kv_heads * d_k, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        head = torch.arange(num_heads) * num_kv_heads // num_heads
        rows = (head[:, None] * d_k + torch.arange(d_k)).flatten()
        self.register_buffer("rows", rows, persistent=False)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)

    def wide(self, layer, x):
        bias = None if layer.bias is None else layer.bias[self.rows]
        return F.linear(x, layer.weight[self.rows], bias)

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            torch.stack(x.chunk(self.num_heads, -1), 1)
            for x in (self.w_q(query), self.wide(self.w_k, key), self.wide(self.w_v, value))
        )
        scores = (q.unsqueeze(3) * k.unsqueeze(2)).sum(-1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = torch.where(mask.bool(), scores, torch.full_like(scores, -torch.inf))
        dead = torch.isneginf(scores).all(dim=-1, keepdim=True)
        weights = F.softmax(torch.where(dead, torch.zeros_like(scores), scores), dim=-1)
        weights = self.dropout(torch.where(dead, torch.zeros_like(weights), weights))
        return self.w_o(torch.cat((weights @ v).unbind(1), -1)), weights
