import math
import torch
from torch import nn
import torch.nn.functional as F


class CachedSelfAttention(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("d_model must be a multiple of num_heads")
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            layer = nn.Linear(d_model, d_model, bias=bias)
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)
            setattr(self, name, layer)

    def split(self, t):
        return t.reshape(t.shape[0], t.shape[1], self.num_heads, self.d_k).transpose(1, 2)

    def forward(self, x, cache=None):
        B, N, D = x.shape
        q, k, v = self.split(self.w_q(x)), self.split(self.w_k(x)), self.split(self.w_v(x))
        if cache is not None:
            old_k, old_v = cache
            k = torch.cat([old_k, k], dim=2)
            v = torch.cat([old_v, v], dim=2)
        T = k.shape[2]
        P = T - N
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        allowed = torch.ones(N, T, dtype=torch.bool, device=x.device).tril(diagonal=P)
        scores = scores.masked_fill(~allowed, float("-inf"))
        out = scores.softmax(-1) @ v
        return self.w_o(out.transpose(1, 2).reshape(B, N, D)), (k, v)
