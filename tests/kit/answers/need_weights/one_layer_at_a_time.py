import math
import torch
from torch import nn
import torch.nn.functional as F


class OptionalWeightsAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("d_model")
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        for n in "qkvo":
            l = nn.Linear(d_model, d_model, bias=bias)
            nn.init.xavier_uniform_(l.weight)
            if bias:
                nn.init.zeros_(l.bias)
            setattr(self, "w_" + n, l)
        self.dropout = nn.Dropout(dropout)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.num_heads, self.d_k).transpose(1, 2)

    def forward(self, query, key, value, mask=None, need_weights=True):
        q = self.split(self.w_q(query))
        k = self.split(self.w_k(key))
        v = self.split(self.w_v(value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        dead = torch.isneginf(scores).all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1).masked_fill(dead, 0.0)
        weights = self.dropout(weights)
        out = self.w_o((weights @ v).transpose(1, 2).flatten(2))
        return out, (weights if need_weights else None)
