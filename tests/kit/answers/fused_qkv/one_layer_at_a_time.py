import math
import torch
from torch import nn
import torch.nn.functional as F

class FusedMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.d_model = d_model
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.w_qkv = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.w_qkv, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, x, mask=None):
        B, Tq, D = x.shape
        Tk = Tq
        q, k, v = self.w_qkv(x).view(B, Tq, 3, self.num_heads, self.d_k).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        dead = torch.isneginf(scores).all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1).masked_fill(dead, 0.0)
        weights = self.dropout(weights)
        out = (weights @ v).transpose(1, 2).reshape(B, Tq, D)
        return self.w_o(out), weights


@torch.no_grad()
def fuse(mha, num_heads):
    bias = mha.w_q.bias is not None
    fused = FusedMultiHeadAttention(mha.w_q.weight.shape[0], num_heads, bias=bias)
    fused.to(mha.w_q.weight)
    fused.w_qkv.weight.copy_(torch.cat([mha.w_q.weight, mha.w_k.weight, mha.w_v.weight]))
    fused.w_o.weight.copy_(mha.w_o.weight)
    if bias:
        fused.w_qkv.bias.copy_(torch.cat([mha.w_q.bias, mha.w_k.bias, mha.w_v.bias]))
        fused.w_o.bias.copy_(mha.w_o.bias)
    return fused
