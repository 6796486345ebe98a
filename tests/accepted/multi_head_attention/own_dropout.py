import math

import torch
from torch import nn


def drop(weights, p, training):
    if not training or p == 0:
        return weights
    if p >= 1:
        return torch.zeros_like(weights)
    keep = torch.rand_like(weights, dtype=torch.float32) >= p
    return weights * keep / (1 - p)


def linear(size, bias):
    layer = nn.Linear(size, size, bias=bias)
    layer.weight.data.uniform_(-1, 1).mul_(math.sqrt(3 / size))
    if bias:
        layer.bias.data.zero_()
    return layer


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        nn.Module.__init__(self)
        if math.gcd(d_model, num_heads) != num_heads:
            raise ValueError("num_heads does not divide d_model")
        self.H = num_heads
        self.p = dropout
        self.w_q = linear(d_model, bias)
        self.w_k = linear(d_model, bias)
        self.w_v = linear(d_model, bias)
        self.w_o = linear(d_model, bias)

    def forward(self, query, key, value, mask=None):
        from masking import apply_mask
        from softmax import attention_weights

        q = self.w_q(query).unfold(-1, query.size(-1) // self.H, query.size(-1) // self.H)
        k = self.w_k(key).unfold(-1, key.size(-1) // self.H, key.size(-1) // self.H)
        v = self.w_v(value).unfold(-1, value.size(-1) // self.H, value.size(-1) // self.H)
        q, k, v = (x.permute(0, 2, 1, 3) for x in (q, k, v))
        scores = torch.matmul(q, k.permute(0, 1, 3, 2)) / math.sqrt(q.size(-1))
        weights = attention_weights(apply_mask(scores, mask))
        weights = drop(weights, self.p, self.training)
        out = torch.matmul(weights, v).permute(0, 2, 1, 3).contiguous()
        return self.w_o(out.view(query.shape)), weights
