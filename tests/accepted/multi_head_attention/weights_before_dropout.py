import torch
import torch.nn.functional as F
from softmax import attention_weights
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model % num_heads != 0")
        self.num_heads = num_heads
        self.rate = dropout
        make = lambda: self.linear(d_model, bias)  # noqa: E731
        self.w_q, self.w_k, self.w_v, self.w_o = make(), make(), make(), make()

    @classmethod
    def linear(cls, size, bias):
        layer = nn.Linear(size, size, bias=bias)
        torch.nn.init.xavier_normal_(layer.weight, gain=1.0)
        if bias:
            torch.nn.init.zeros_(layer.bias)
        return layer

    def forward(self, query, key, value, mask=None):
        B, Tq, D = query.shape
        shape = (B, -1, self.num_heads, D // self.num_heads)
        q = self.w_q(query).reshape(shape).transpose(1, 2)
        k = self.w_k(key).reshape(shape).transpose(1, 2)
        v = self.w_v(value).reshape(shape).transpose(1, 2)
        scores = q.matmul(k.transpose(2, 3)).div(shape[-1] ** 0.5)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -torch.inf)
        weights = attention_weights(scores)
        context = F.dropout(weights, p=self.rate, training=self.training) @ v
        return self.w_o(context.transpose(1, 2).reshape(B, Tq, D)), weights
