import torch
from torch import nn


class Dense(nn.Module):
    def __init__(self, d_in, d_out, bias):
        super().__init__()
        bound = (6 / (d_in + d_out)) ** 0.5
        self.weight = nn.Parameter(torch.rand(d_out, d_in) * 2 * bound - bound)
        if bias:
            self.bias = nn.Parameter(torch.zeros(d_out))
        else:
            self.bias = None

    def forward(self, x):
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias


class FusedMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads > 0:
            raise ValueError("uneven")
        self.heads = num_heads
        self.rate = dropout
        self.w_qkv = Dense(d_model, 3 * d_model, bias)
        self.w_o = Dense(d_model, d_model, bias)

    def fold(self, x):
        B, T, D = x.shape
        x = x.reshape(B, T, self.heads, D // self.heads).permute(0, 2, 1, 3)
        return x.reshape(B * self.heads, T, D // self.heads)

    def forward(self, x, mask=None):
        B, T, D = x.shape
        q, k, v = map(self.fold, torch.tensor_split(self.w_qkv(x), 3, dim=2))
        scores = torch.bmm(q, k.transpose(1, 2)) / (D // self.heads) ** 0.5
        if mask is not None:
            mask = mask.to(torch.bool).broadcast_to(B, self.heads, T, T).reshape(-1, T, T)
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(-1)
        if mask is not None:
            weights = weights * mask.any(-1, keepdim=True)
        if self.training and self.rate > 0:
            keep = torch.rand_like(weights) >= self.rate
            weights = weights * keep / (1 - self.rate)
        out = torch.bmm(weights, v).view(B, self.heads, T, -1).transpose(1, 2).reshape(B, T, D)
        return self.w_o(out), weights.view(B, self.heads, T, T)


def fuse(mha, num_heads):
    D = mha.w_q.weight.shape[-1]
    has_bias = getattr(mha.w_q, "bias", None) is not None
    new = FusedMultiHeadAttention(D, num_heads, bias=has_bias).to(mha.w_q.weight)
    for start, layer in zip((0, D, 2 * D), (mha.w_q, mha.w_k, mha.w_v)):
        new.w_qkv.weight.data[start : start + D] = layer.weight.data
        if has_bias:
            new.w_qkv.bias.data[start : start + D] = layer.bias.data
    new.w_o.weight.data.copy_(mha.w_o.weight.data)
    if has_bias:
        new.w_o.bias.data.copy_(mha.w_o.bias.data)
    return new
