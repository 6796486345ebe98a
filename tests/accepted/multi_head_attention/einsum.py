import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("no")
        self.H = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (
            nn.Linear(d_model, d_model, bias=bias) for _ in range(4)
        )
        self.drop = nn.Dropout(dropout)
        self.apply(self._init)

    @staticmethod
    def _init(module):
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, query, key, value, mask=None):
        q = self.w_q(query).unflatten(-1, (self.H, -1))  # (B, Tq, H, d_k)
        k = self.w_k(key).unflatten(-1, (self.H, -1))
        v = self.w_v(value).unflatten(-1, (self.H, -1))
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        if mask is not None:
            s = torch.where(mask != 0, s, float("-inf"))
            dead = s.isneginf().all(-1, keepdim=True)
            w = s.masked_fill(dead, 0).softmax(-1).masked_fill(dead, 0)
        else:
            w = s.softmax(-1)
        w = self.drop(w)
        out = torch.einsum("bhqk,bkhd->bqhd", w, v).flatten(2)
        return self.w_o(out), w
