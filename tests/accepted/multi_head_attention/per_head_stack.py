import math

import torch
import torch.nn.functional as F
from torch import nn


def one_head(q, k, v, blocked, p, training):
    scores = q @ k.transpose(1, 2) / math.sqrt(q.size(-1))
    if blocked is not None:
        scores = scores.masked_fill(blocked, -math.inf)
        empty = blocked.expand_as(scores).all(dim=-1, keepdim=True)
        weights = F.softmax(scores.masked_fill(empty, 0.0), dim=-1)
        weights = weights.masked_fill(empty, 0.0)
    else:
        weights = F.softmax(scores, dim=-1)
    weights = F.dropout(weights, p, training)
    return weights @ v, weights


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        self.d_k, rest = divmod(d_model, num_heads)
        if rest != 0:
            raise ValueError("heads do not divide the model")
        self.num_heads = num_heads
        self.p = dropout
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        for name, p in self.named_parameters():
            if name.endswith("weight"):
                nn.init.xavier_uniform_(p)
            else:
                nn.init.constant_(p, 0.0)

    def forward(self, query, key, value, mask=None):
        B, Tq, _ = query.shape
        Tk = key.shape[1]
        blocked = None
        if mask is not None:
            blocked = (mask == 0).expand(B, self.num_heads, Tq, Tk)
        qs = self.w_q(query).split(self.d_k, dim=-1)
        ks = self.w_k(key).split(self.d_k, dim=-1)
        vs = self.w_v(value).split(self.d_k, dim=-1)
        outs, weights = [], []
        for h, (q, k, v) in enumerate(zip(qs, ks, vs)):
            here = None if blocked is None else blocked[:, h]
            o, w = one_head(q, k, v, here, self.p, self.training)
            outs.append(o)
            weights.append(w)
        return self.w_o(torch.cat(outs, dim=-1)), torch.stack(weights, dim=1)
