import math
import torch
from torch import nn
import torch.nn.functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, d_in, d_out, context_size, num_heads, dropout=0.0, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out")
        self.num_heads, self.d_k, self.d_out = num_heads, d_out // num_heads, d_out
        self.context_size = context_size
        self.w_q = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_k = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_v = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_o = nn.Linear(d_out, d_out)
        for l in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(l.weight)
            if l.bias is not None:
                nn.init.zeros_(l.bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("m", torch.ones(context_size, context_size).tril().flatten().bool())

    def forward(self, x):
        B, T, _ = x.shape
        if T > self.context_size:
            raise ValueError("too long")
        q, k, v = (
            l(x).view(B, T, self.num_heads, self.d_k).transpose(1, 2)
            for l in (self.w_q, self.w_k, self.w_v)
        )
        scores = q @ k.transpose(-2, -1)
        scores = scores.masked_fill(~self.m.view(self.context_size, -1)[:T, :T], -torch.inf)
        weights = torch.softmax(scores / math.sqrt(self.d_k), dim=-1)
        weights = self.dropout(weights)
        out = (weights @ v).transpose(1, 2).contiguous().view(B, T, self.d_out)
        return self.w_o(out)
