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
        if not need_weights:
            outs = []
            for i in range(0, q.shape[2], 2):
                s = q[:, :, i : i + 2] @ k.mT * self.d_k**-0.5
                if mask is not None:
                    m = mask.bool().expand(q.shape[0], self.num_heads, q.shape[2], k.shape[2])[
                        :, :, i : i + 2
                    ]
                    s = s.masked_fill(~m, torch.finfo(s.dtype).min).softmax(-1) * m
                else:
                    s = s.softmax(-1)
                outs.append(F.dropout(s, self.dropout.p, self.training) @ v)
            return self.w_o(torch.cat(outs, 2).movedim(1, 2).flatten(2)), None
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        dead = torch.isneginf(scores).all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1).masked_fill(dead, 0.0)
        weights = self.dropout(weights)
        out = self.w_o((weights @ v).transpose(1, 2).flatten(2))
        return out, (weights if need_weights else None)
