import math

import torch
from torch import nn


class FusedMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.w_qkv = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.w_qkv, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def split(self, x):
        B, T, D = x.shape
        return x.reshape(B, T, self.num_heads, self.d_k).transpose(1, 2)

    def forward(self, x, mask=None):
        B, T, D = x.shape
        q, k, v = self.w_qkv(x).chunk(3, dim=-1)
        q, k, v = self.split(q), self.split(k), self.split(v)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        dead = (scores == float("-inf")).all(dim=-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1).masked_fill(dead, 0.0)
        weights = self.dropout(weights)
        context = (weights @ v).transpose(1, 2).reshape(B, T, D)
        return self.w_o(context), weights


def fuse(mha, num_heads):
    has_bias = mha.w_q.bias is not None
    fused = FusedMultiHeadAttention(mha.w_q.weight.shape[1], num_heads, bias=has_bias)
    fused = fused.to(mha.w_q.weight.device, mha.w_q.weight.dtype)
    with torch.no_grad():
        fused.w_qkv.weight.copy_(torch.cat([mha.w_q.weight, mha.w_k.weight, mha.w_v.weight]))
        fused.w_o.weight.copy_(mha.w_o.weight)
        if has_bias:
            fused.w_qkv.bias.copy_(torch.cat([mha.w_q.bias, mha.w_k.bias, mha.w_v.bias]))
            fused.w_o.bias.copy_(mha.w_o.bias)
    return fused
