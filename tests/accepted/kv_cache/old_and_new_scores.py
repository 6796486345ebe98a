from __future__ import annotations

import math

import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    """Scores of old keys and of new keys apart, one softmax over both; a head at a time."""

    def __init__(self, d_model: int, num_heads: int, bias: bool = True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(d_model, num_heads)
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        bound = math.sqrt(3 / d_model)
        for name in "qkvo":
            layer = nn.Linear(d_model, d_model, bias=bias)
            nn.init.uniform_(layer.weight, -bound, bound)
            if bias:
                nn.init.zeros_(layer.bias)
            self.add_module(f"w_{name}", layer)

    def forward(self, x, cache: tuple | None = None):
        split = [w(x).split(self.d_k, dim=2) for w in (self.w_q, self.w_k, self.w_v)]
        outputs, keys, values = [], [], []
        for h, (q, k, v) in enumerate(zip(*split)):
            N = x.shape[1]
            scores = q @ k.mT
            later = torch.arange(N)[None, :] > torch.arange(N)[:, None]
            scores = torch.where(later.to(x.device), float("-inf"), scores)
            if cache is not None:
                past_k, past_v = cache[0][:, h], cache[1][:, h]
                scores = torch.cat([q @ past_k.mT, scores], dim=2)
                k, v = torch.cat([past_k, k], dim=1), torch.cat([past_v, v], dim=1)
            weights = torch.softmax(scores / self.d_k**0.5, dim=2)
            outputs.append(weights @ v)
            keys.append(k)
            values.append(v)
        return self.w_o(torch.cat(outputs, dim=2)), (torch.stack(keys, 1), torch.stack(values, 1))
