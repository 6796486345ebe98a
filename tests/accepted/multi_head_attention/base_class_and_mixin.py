import torch
import torch.nn.functional as F
from torch import nn


class Initialised:
    def initialise(self):
        for parameter in self.parameters():
            (nn.init.xavier_uniform_ if parameter.ndim > 1 else nn.init.zeros_)(parameter)


class AttentionBase(nn.Module):
    def attend(self, q, k, v, allowed):
        raise TypeError("use a subclass")

    def forward(self, query, key, value, mask=None):
        print("query", query.shape, "key", key.shape)
        q, k, v = self.project(query, key, value)
        heads, weights = self.attend(q, k, v, mask)
        return self.w_o(torch.cat([*heads.unbind(1)], -1)), weights


class MultiHeadAttention(Initialised, AttentionBase):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if (rest := d_model % num_heads) != 0:
            raise ValueError(f"{rest} features left over")
        self.cut = (num_heads, d_model // num_heads)
        self.dropout = nn.Dropout(dropout)
        for letter in "qkvo":
            self.add_module(f"w_{letter}", nn.Linear(d_model, d_model, bias=bias))
        self.initialise()

    def project(self, *inputs):
        layers = (self.w_q, self.w_k, self.w_v)
        return [w(x).unflatten(-1, self.cut).swapaxes(1, 2) for w, x in zip(layers, inputs)]

    def attend(self, q, k, v, allowed):
        scores = torch.einsum("...qd,...kd->...qk", q, k)
        scores = scores * torch.rsqrt(torch.tensor(float(self.cut[1])))
        match allowed:
            case None:
                weights = F.softmax(scores, dim=-1)
            case _:
                allowed = allowed.bool()
                empty = ~allowed.any(-1, keepdim=True)
                scores = torch.where(allowed | empty, scores, -torch.inf)
                weights = F.softmax(scores, dim=-1).masked_fill(empty, 0)
        weights = self.dropout(weights)
        return weights @ v, weights
