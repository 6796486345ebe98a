# Eigene Linear-Schicht ✍ – Namen wie bei nn.Linear
import math

import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self, d_in, d_out, bias):
        super().__init__()
        bound = math.sqrt(6 / (d_in + d_out))
        self.weight = nn.Parameter(torch.empty(d_out, d_in).uniform_(-bound, bound))
        if bias:
            self.bias = nn.Parameter(torch.zeros(d_out))
        else:
            self.register_parameter("bias", None)

    def forward(self, x):
        y = torch.matmul(x, self.weight.t())
        return y if self.bias is None else y + self.bias


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("d_model, num_heads")
        self.num_heads = num_heads
        self.w_q = Linear(d_model, d_model, bias)
        self.w_k = Linear(d_model, d_model, bias)
        self.w_v = Linear(d_model, d_model, bias)
        self.w_o = Linear(d_model, d_model, bias)
        self.dropout = nn.Dropout(p=dropout)

    def heads(self, x):
        B, T, D = x.shape
        return x.reshape(B, T, self.num_heads, D // self.num_heads).permute(0, 2, 1, 3)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.heads(self.w_q(query)), self.heads(self.w_k(key)), self.heads(self.w_v(value))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        if mask is None:
            weights = torch.softmax(scores, dim=-1)
        else:
            allowed = mask.to(torch.bool).expand_as(scores)
            some = allowed.any(dim=-1, keepdim=True)
            weights = torch.softmax(scores.masked_fill(~allowed & some, -math.inf), dim=-1) * some
        weights = self.dropout(weights)
        out = torch.matmul(weights, v).transpose(1, 2).contiguous()
        out = out.view(out.shape[0], out.shape[1], -1)
        return self.w_o(out), weights
