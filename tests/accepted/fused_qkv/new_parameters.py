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
    stack = lambda name: nn.Parameter(
        torch.vstack(
            [
                getattr(l, name).detach().reshape(l.out_features, -1)
                for l in (mha.w_q, mha.w_k, mha.w_v)
            ]
        )
        .clone()
        .reshape((-1,) if name == "bias" else (-1, mha.w_q.in_features))
    )
    new = FusedMultiHeadAttention(mha.w_o.out_features, num_heads, bias=mha.w_o.bias is not None)
    new.w_qkv.weight = stack("weight")
    new.w_o.weight = nn.Parameter(mha.w_o.weight.detach().clone())
    if mha.w_o.bias is not None:
        new.w_qkv.bias = stack("bias")
        new.w_o.bias = nn.Parameter(mha.w_o.bias.detach().clone())
    return new
