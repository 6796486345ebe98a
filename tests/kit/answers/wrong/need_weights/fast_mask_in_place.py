# The fast way turns the mask around in place, and back in a copy
import math

import torch
import torch.nn.functional as F
from torch import nn


class OptionalWeightsAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.num_heads, self.d_k).transpose(1, 2)

    def join(self, x):
        return x.transpose(1, 2).flatten(2)

    def forward(self, query, key, value, mask=None, need_weights=True):
        q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
        if not need_weights:
            if mask is not None:
                mask = ~mask.logical_not_().bool()
            p = self.dropout.p if self.training else 0.0
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
            if mask is not None:
                out = out.masked_fill(~mask.expand(q.shape[0], q.shape[1], q.shape[2], -1).any(-1, True), 0.0)
            return self.w_o(self.join(out)), None
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        dead = (scores == float("-inf")).all(dim=-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1).masked_fill(dead, 0.0)
        weights = self.dropout(weights)
        output = self.w_o(self.join(weights @ v))
        if not need_weights:
            return output, None
        return output, weights
