import math
from typing import NamedTuple

import torch
from torch import nn


class Result(NamedTuple):
    output: torch.Tensor
    weights: torch.Tensor


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0 or num_heads % num_kv_heads != 0:
            raise ValueError("d_model, num_heads, num_kv_heads")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model * num_kv_heads // num_heads, bias=bias)
        self.w_v = nn.Linear(d_model, d_model * num_kv_heads // num_heads, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.drop = nn.Dropout(dropout)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)

    def forward(self, query, key, value, mask=None):
        B, Tq, Tk = len(query), query.shape[1], key.shape[1]
        if mask is None:
            mask = torch.ones(1, dtype=torch.bool, device=query.device)
        mask = mask.bool().expand(B, self.num_heads, Tq, Tk)
        queries = self.w_q(query).chunk(self.num_heads, dim=-1)
        keys = self.w_k(key).chunk(self.num_kv_heads, dim=-1)
        values = self.w_v(value).chunk(self.num_kv_heads, dim=-1)
        found, maps = [], []
        for h, q in enumerate(queries):
            shared = h * self.num_kv_heads // self.num_heads
            scores = torch.bmm(q, keys[shared].mT) / math.sqrt(q.shape[-1])
            e = self.own_exp(scores, mask[:, h])
            w = self.drop(e / e.sum(-1, keepdim=True).clamp(min=1e-6))
            found.append(torch.bmm(w, values[shared]))
            maps.append(w)
        return Result(self.w_o(torch.cat(found, -1)), torch.stack(maps, 1))

    @staticmethod
    def own_exp(scores, allowed):
        low = torch.finfo(scores.dtype).min
        top = scores.where(allowed, low).amax(-1, keepdim=True)
        return torch.exp((scores - top).where(allowed, float("-inf")))
