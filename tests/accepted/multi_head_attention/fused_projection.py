import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("uneven heads")
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for layer in [self.w_q, self.w_k, self.w_v, self.w_o]:
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def project(self, query, key, value):
        if query is key and key is value:  # one large product instead of three
            layers = (self.w_q, self.w_k, self.w_v)
            weight = torch.cat([layer.weight for layer in layers])
            bias = None if self.w_q.bias is None else torch.cat([layer.bias for layer in layers])
            return F.linear(query, weight, bias).chunk(3, dim=-1)
        return self.w_q(query), self.w_k(key), self.w_v(value)

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            x.unflatten(2, (self.num_heads, -1)).transpose(1, 2)
            for x in self.project(query, key, value)
        )
        scores = (q / q.shape[-1] ** 0.25) @ (k / k.shape[-1] ** 0.25).transpose(-1, -2)
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), float("-inf"))
        empty = torch.isneginf(scores).all(-1, keepdim=True)
        weights = F.softmax(torch.where(empty, 0.0, scores), dim=-1)
        weights = self.dropout(torch.where(empty, 0.0, weights))
        return self.w_o((weights @ v).transpose(1, 2).flatten(2)), weights
