# A single query of each sequence has the shortest length of all
import math
import torch
from torch import nn
import torch.nn.functional as F


def transpose_qkv(x, num_heads):
    B, T, D = x.shape
    return (
        x.reshape(B, T, num_heads, D // num_heads)
        .transpose(1, 2)
        .reshape(B * num_heads, T, D // num_heads)
    )


def transpose_output(x, num_heads):
    BH, T, d = x.shape
    return (
        x.reshape(BH // num_heads, num_heads, T, d)
        .transpose(1, 2)
        .reshape(BH // num_heads, T, num_heads * d)
    )


class ValidLensAttention(nn.Module):
    def __init__(self, num_hiddens, num_heads, dropout=0.0, bias=False):
        super().__init__()
        if num_hiddens % num_heads:
            raise ValueError("num_hiddens")
        self.num_heads = num_heads
        self.w_q = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_k = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_v = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_o = nn.LazyLinear(num_hiddens, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        q = transpose_qkv(self.w_q(queries), self.num_heads)
        k = transpose_qkv(self.w_k(keys), self.num_heads)
        v = transpose_qkv(self.w_v(values), self.num_heads)
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        if valid_lens is not None:
            lens = valid_lens.repeat_interleave(self.num_heads, dim=0)
            if lens.dim() == 2 and q.shape[1] == 1:
                lens = lens.squeeze(1) * 0 + lens.amin()
            if lens.dim() == 1:
                lens = lens[:, None]
            allowed = torch.arange(k.shape[1], device=k.device) < lens[..., None]
            scores = scores.masked_fill(~allowed, float("-inf"))
            dead = ~allowed.any(-1, keepdim=True)
            weights = scores.masked_fill(dead, 0.0).softmax(-1).masked_fill(dead, 0.0)
        else:
            weights = scores.softmax(-1)
        out = torch.bmm(self.dropout(weights), v)
        return self.w_o(transpose_output(out, self.num_heads))
