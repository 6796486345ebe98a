import copy

import torch
import torch.nn.functional as F
from torch import nn

from softmax import attention_weights


class FusedMultiHeadAttention(nn.Module):
    """Never cuts the output: each part of the weight is used by itself."""

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.w_qkv = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.apply(self.start)

    @staticmethod
    def start(layer):
        if isinstance(layer, nn.Linear):
            for part in layer.weight.data.split(layer.in_features):
                nn.init.xavier_normal_(part)
            if layer.bias is not None:
                layer.bias.data.zero_()

    def part(self, x, number):
        D = x.shape[-1]
        weight = self.w_qkv.weight[number * D : (number + 1) * D].reshape(self.num_heads, -1, D)
        y = torch.einsum("btd,hkd->bhtk", x, weight)
        if self.w_qkv.bias is not None:
            y = y + self.w_qkv.bias[number * D : (number + 1) * D].reshape(self.num_heads, 1, -1)
        return y

    def forward(self, x, mask=None):
        q, k, v = (self.part(x, number) for number in range(3))
        scores = q @ k.mT * q.shape[-1] ** -0.5
        some = 1.0
        if mask is not None:
            allowed = mask.bool().expand_as(scores)
            scores = scores.masked_fill(~allowed, float("-inf"))
            some = allowed.any(-1, keepdim=True)
            mask = allowed | ~some
        weights = attention_weights(scores)  # before dropout
        p = self.dropout if self.training else 0.0
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p) * some
        joined = context.transpose(1, 2).flatten(2)
        return F.linear(joined, self.w_o.weight, self.w_o.bias), weights


def fuse(mha, num_heads):
    D = mha.w_o.weight.shape[0]
    new = FusedMultiHeadAttention(D, num_heads, bias=mha.w_o.bias is not None)
    new.w_o = copy.deepcopy(mha.w_o)
    names = ["w_q", "w_k", "w_v"]
    new.w_qkv.weight = nn.Parameter(
        torch.cat([getattr(mha, name).weight.detach() for name in names]).clone()
    )
    if new.w_qkv.bias is not None:
        new.w_qkv.bias = nn.Parameter(torch.cat([getattr(mha, n).bias.detach() for n in names]))
    return new
