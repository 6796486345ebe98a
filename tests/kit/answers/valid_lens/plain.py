import math

import torch
from torch import nn


def transpose_qkv(x, num_heads):
    x = x.reshape(x.shape[0], x.shape[1], num_heads, -1)
    x = x.permute(0, 2, 1, 3)
    return x.reshape(-1, x.shape[2], x.shape[3])


def transpose_output(x, num_heads):
    x = x.reshape(-1, num_heads, x.shape[1], x.shape[2])
    x = x.permute(0, 2, 1, 3)
    return x.reshape(x.shape[0], x.shape[1], -1)


class ValidLensAttention(nn.Module):
    def __init__(self, num_hiddens, num_heads, dropout=0.0, bias=False):
        super().__init__()
        if num_hiddens % num_heads:
            raise ValueError("num_hiddens must be divisible by num_heads")
        self.num_heads = num_heads
        self.w_q = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_k = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_v = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_o = nn.LazyLinear(num_hiddens, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def weights(self, scores, lens):
        if lens is None:
            return torch.softmax(scores, dim=-1)
        if lens.dim() == 1:
            lens = lens[:, None]
        valid = torch.arange(scores.shape[-1], device=scores.device) < lens[:, :, None]
        scores = scores.masked_fill(~valid, -math.inf)
        empty = (lens == 0)[:, :, None]
        return torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)

    def forward(self, queries, keys, values, valid_lens=None):
        q = transpose_qkv(self.w_q(queries), self.num_heads)
        k = transpose_qkv(self.w_k(keys), self.num_heads)
        v = transpose_qkv(self.w_v(values), self.num_heads)
        if valid_lens is not None:
            valid_lens = valid_lens.repeat_interleave(self.num_heads, dim=0)
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        weights = self.dropout(self.weights(scores, valid_lens))
        return self.w_o(transpose_output(torch.bmm(weights, v), self.num_heads))
