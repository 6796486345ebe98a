import torch
from torch import nn


class FusedMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("d_model % num_heads")
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.w_qkv = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        nn.init.xavier_uniform_(self.w_qkv.weight)
        nn.init.xavier_uniform_(self.w_o.weight)
        if bias:
            nn.init.zeros_(self.w_qkv.bias)
            nn.init.zeros_(self.w_o.bias)

    def forward(self, x, mask=None):
        B, T, D = x.shape
        qkv = self.w_qkv(x).view(B, T, 3, self.num_heads, self.d_k).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = q @ k.transpose(-2, -1) / self.d_k**0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        dead = torch.isneginf(scores).all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1).masked_fill(dead, 0.0)
        weights = self.dropout(weights)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, D)), weights


def fuse(mha, num_heads):
    d_model = mha.w_q.in_features
    out = FusedMultiHeadAttention(d_model, num_heads, bias=mha.w_q.bias is not None)
    out = out.to(device=mha.w_q.weight.device, dtype=mha.w_q.weight.dtype)
    with torch.no_grad():
        out.w_qkv.weight.copy_(torch.cat([mha.w_q.weight, mha.w_k.weight, mha.w_v.weight], dim=0))
        out.w_o.weight.copy_(mha.w_o.weight)
        if mha.w_q.bias is not None:
            out.w_qkv.bias.copy_(torch.cat([mha.w_q.bias, mha.w_k.bias, mha.w_v.bias]))
            out.w_o.bias.copy_(mha.w_o.bias)
    return out
