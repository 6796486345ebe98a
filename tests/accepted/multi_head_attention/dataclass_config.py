from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass(frozen=True)
class Config:
    d_model: int
    num_heads: int
    dropout: float = 0.0
    bias: bool = True

    def __post_init__(self):
        if self.d_model % self.num_heads != 0:
            raise ValueError("num_heads must divide d_model")

    @property
    def d_k(self) -> int:
        return self.d_model // self.num_heads


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        self.config = Config(d_model, num_heads, dropout, bias)
        self.w_q = self._layer()
        self.w_k = self._layer()
        self.w_v = self._layer()
        self.w_o = self._layer()
        self.attn_dropout = nn.Dropout(self.config.dropout)
        self.last_weights = None

    def _layer(self) -> nn.Linear:
        c = self.config
        layer = nn.Linear(c.d_model, c.d_model, bias=c.bias)
        a = math.sqrt(3 / c.d_model)
        nn.init.uniform_(layer.weight, -a, a)
        if c.bias:
            nn.init.zeros_(layer.bias)
        return layer

    def _split(self, x):
        return x.reshape(x.size(0), x.size(1), self.config.num_heads, self.config.d_k).movedim(2, 1)

    def _merge(self, x):
        return x.movedim(1, 2).reshape(x.size(0), x.size(2), self.config.d_model)

    def _attend(self, q, k, mask):
        scores = torch.matmul(q, k.mT) / math.sqrt(self.config.d_k)
        if mask is None:
            return scores.softmax(dim=-1)
        bias = torch.zeros_like(scores).masked_fill(mask == 0, -math.inf)
        dead = torch.isinf(bias).all(dim=-1, keepdim=True)
        bias = bias.masked_fill(dead, 0)
        return (scores + bias).softmax(dim=-1).masked_fill(dead, 0)

    def forward(self, query, key, value, mask=None):
        q, k, v = map(self._split, (self.w_q(query), self.w_k(key), self.w_v(value)))
        weights = self.attn_dropout(self._attend(q, k, mask))
        self.last_weights = weights.detach()
        return self.w_o(self._merge(weights @ v)), weights
