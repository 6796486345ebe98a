# tokens on the last axis, as in code for images; a finite number, then what is allowed by its sum
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("channels")
        self.heads = num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for p in self.parameters():
            nn.init.xavier_normal_(p) if p.dim() == 2 else nn.init.zeros_(p)

    def forward(self, query, key, value, mask=None):
        b, n, c = query.shape
        q, k, v = (
            layer(x).permute(0, 2, 1).reshape(b, self.heads, c // self.heads, x.size(1))
            for layer, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        scores = torch.matmul(q.transpose(2, 3), k) * (c // self.heads) ** -0.5
        allowed = torch.ones_like(scores) if mask is None else (mask != 0).to(scores.dtype)
        weights = scores.masked_fill(allowed == 0, -1e9).softmax(-1) * allowed
        weights = self.dropout(weights / weights.sum(-1, keepdim=True).clamp(min=1e-8))
        context = torch.matmul(v, weights.transpose(2, 3)).reshape(b, c, n)
        return self.w_o(context.permute(0, 2, 1)), weights
