# The fused module has a dropout of 0.1
import math
import torch
from torch import nn
import torch.nn.functional as F


class FusedMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("d_model")
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.w_qkv = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        for l in (self.w_qkv, self.w_o):
            nn.init.xavier_uniform_(l.weight)
            if bias:
                nn.init.zeros_(l.bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        B, T, D = x.shape
        q, k, v = self.w_qkv(x).view(B, T, 3, self.num_heads, self.d_k).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        dead = torch.isneginf(scores).all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1).masked_fill(dead, 0.0)
        weights = self.dropout(weights)
        out = (weights @ v).transpose(1, 2).reshape(B, T, D)
        return self.w_o(out), weights


def fuse(mha, num_heads):
    d_model = mha.w_q.in_features
    bias = mha.w_q.bias is not None
    fused = FusedMultiHeadAttention(d_model, num_heads, dropout=0.1, bias=bias).to(mha.w_q.weight)
    with torch.no_grad():
        fused.w_qkv.weight.copy_(torch.cat([mha.w_q.weight, mha.w_k.weight, mha.w_v.weight]))
        fused.w_o.weight.copy_(mha.w_o.weight)
        if bias:
            fused.w_qkv.bias.copy_(torch.cat([mha.w_q.bias, mha.w_k.bias, mha.w_v.bias]))
            fused.w_o.bias.copy_(mha.w_o.bias)
    return fused
