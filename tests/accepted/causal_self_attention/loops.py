import math

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    # head by head, and each token by itself: the mask's row says what it sees

    def __init__(self, d_in, d_out, context_size, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(d_out)
        self.H, self.dk = num_heads, d_out // num_heads
        for name in ("w_q", "w_k", "w_v"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.w_o = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        mask = torch.zeros(context_size, context_size, dtype=torch.uint8)
        for i in range(context_size):
            mask[i, : i + 1] = 1
        self.register_buffer("sees", mask.view(1, context_size, context_size))
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            bound = math.sqrt(6 / sum(layer.weight.shape))
            nn.init.uniform_(layer.weight, -bound, bound)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, x):
        B, T, _ = x.shape
        if T > self.sees.size(-1):
            raise ValueError("context")
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        heads = []
        for h in range(self.H):
            part = slice(h * self.dk, (h + 1) * self.dk)
            rows = []
            for t in range(T):
                keep = self.sees[0, t, :T] != 0
                score = (k[:, keep, part] * q[:, t : t + 1, part]).sum(-1) / math.sqrt(self.dk)
                e = torch.exp(score - score.max(-1, keepdim=True).values)
                weight = self.dropout(e / e.sum(-1, keepdim=True))
                rows.append((weight.unsqueeze(-1) * v[:, keep, part]).sum(1))
            heads.append(torch.stack(rows, 1))
        return self.w_o(torch.cat(heads, -1))
