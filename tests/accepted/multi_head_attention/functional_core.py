from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

to_heads = lambda x, H: x.view(x.shape[0], x.shape[1], H, -1).transpose(1, 2)  # noqa: E731
from_heads = lambda x: x.transpose(1, 2).flatten(2)  # noqa: E731


def attention(q, k, v, mask, dropout):
    log_weights = q @ k.mT / q.shape[-1] ** 0.5
    allowed = torch.ones((), dtype=torch.bool, device=q.device) if mask is None else mask.bool()
    allowed = allowed.expand(log_weights.shape)
    empty = ~allowed.any(-1, keepdim=True)
    log_weights = log_weights.masked_fill(~allowed & ~empty, -torch.inf)
    log_weights = log_weights - torch.logsumexp(log_weights, -1, keepdim=True)
    weights = dropout(log_weights.exp().masked_fill(empty, 0))
    return weights @ v, weights


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model // num_heads * num_heads != d_model:
            raise ValueError("uneven")
        self.num_heads, self.p = num_heads, dropout
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_normal_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, query, key, value, mask=None):
        inputs = zip((self.w_q, self.w_k, self.w_v), (query, key, value))
        q, k, v = [to_heads(F.linear(x, w.weight, w.bias), self.num_heads) for w, x in inputs]
        dropout = partial(F.dropout, p=self.p, training=self.training)
        heads, weights = attention(q, k, v, mask, dropout)
        return F.linear(from_heads(heads), self.w_o.weight, self.w_o.bias), weights
