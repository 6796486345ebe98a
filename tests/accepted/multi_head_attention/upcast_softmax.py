import math

import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    """Scores and softmax in float32, as many large models do it."""

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("bad num_heads")
        self.head_dim = d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)

    def forward(self, query, key, value, mask=None):
        bsz, q_len, _ = query.shape
        q = self.w_q(query).view(bsz, q_len, -1, self.head_dim).transpose(1, 2)
        k = self.w_k(key).view(bsz, key.shape[1], -1, self.head_dim).transpose(1, 2)
        v = self.w_v(value).view(bsz, value.shape[1], -1, self.head_dim).transpose(1, 2)
        scores = torch.matmul(q.float(), k.float().transpose(2, 3)) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        empty = scores.eq(float("-inf")).all(-1, keepdim=True)
        weights = F.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)
        weights = self.dropout(weights.to(q.dtype))
        out = torch.matmul(weights, v).transpose(1, 2).reshape(bsz, q_len, -1)
        return self.w_o(out), weights
