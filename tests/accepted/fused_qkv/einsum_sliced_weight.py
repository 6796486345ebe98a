import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FusedMultiHeadAttention(nn.Module):
    """Never cuts the output: each part of the weight is used by itself."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model} features, {num_heads} heads")
        self.H = num_heads
        self.w_qkv = nn.Linear(d_model, d_model * 3, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.p = dropout
        with torch.no_grad():
            for part in range(3):
                nn.init.xavier_normal_(self.w_qkv.weight[part * d_model : (part + 1) * d_model])
            nn.init.xavier_normal_(self.w_o.weight)
            for layer in (self.w_qkv, self.w_o):
                if layer.bias is not None:
                    layer.bias.fill_(0)

    def part(self, x: Tensor, number: int) -> Tensor:
        D = x.shape[-1]
        weight = self.w_qkv.weight[number * D : (number + 1) * D].reshape(self.H, -1, D)
        y = torch.einsum("btd,hkd->bhtk", x, weight)
        if self.w_qkv.bias is not None:
            y = y + self.w_qkv.bias[number * D : (number + 1) * D].reshape(self.H, 1, -1)
        return y

    def forward(self, x: Tensor, mask=None):
        q, k, v = (self.part(x, number) for number in range(3))
        s = torch.einsum("bhik,bhjk->bhij", q, k) * q.size(-1) ** -0.5
        if mask is None:
            w = s.softmax(-1)
        else:
            keep = mask.bool().expand_as(s)
            some = keep.any(-1, keepdim=True)
            w = s.masked_fill(~keep & some, float("-inf")).softmax(-1) * some
        w = F.dropout(w, self.p, self.training)
        o = torch.einsum("bhij,bhjk->bihk", w, v).flatten(-2)
        return F.linear(o, self.w_o.weight, self.w_o.bias), w


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
