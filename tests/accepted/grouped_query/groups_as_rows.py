import math
import torch
from torch import nn
import torch.nn.functional as F


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("d_model")
        if num_heads % num_kv_heads:
            raise ValueError("kv")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.d_k = d_model // num_heads
        self.group = num_heads // num_kv_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, num_kv_heads * self.d_k, bias=bias)
        self.w_v = nn.Linear(d_model, num_kv_heads * self.d_k, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        for l in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(l.weight)
            if l.bias is not None:
                nn.init.zeros_(l.bias)
        self.dropout = nn.Dropout(dropout)

    def split(self, x, h):
        return x.view(x.shape[0], x.shape[1], h, self.d_k).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q = self.split(self.w_q(query), self.num_heads)
        k = self.split(self.w_k(key), self.num_kv_heads)
        v = self.split(self.w_v(value), self.num_kv_heads)
        B, H, Tq, dk = q.shape
        scores = (q.reshape(B, self.num_kv_heads, self.group * Tq, dk) @ k.mT / dk**0.5).reshape(
            B, H, Tq, -1
        )
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        dead = torch.isneginf(scores).all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1).masked_fill(dead, 0.0)
        weights = self.dropout(weights)
        out = (
            (weights.reshape(B, self.num_kv_heads, self.group * Tq, -1) @ v)
            .reshape(B, H, Tq, dk)
            .transpose(1, 2)
            .flatten(2)
        )
        return self.w_o(out), weights
