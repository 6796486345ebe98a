from multi_head_attention import MultiHeadAttention
from torch import nn


class Shared(nn.Linear):
    """A narrow layer whose output is lent to every head of its group."""

    def __init__(self, d_model, heads, group, d_k, bias):
        super().__init__(d_model, heads * d_k, bias=bias)
        self.heads, self.group = heads, group
        nn.init.xavier_uniform_(self.weight)
        if bias:
            nn.init.zeros_(self.bias)

    def forward(self, x):
        y = super().forward(x).unflatten(-1, (self.heads, 1, -1))
        return y.expand(-1, -1, -1, self.group, -1).flatten(2)


class GroupedQueryAttention(MultiHeadAttention):
    def __init__(self, d_model, num_heads, num_kv_heads, dropout=0.0, bias=True):
        super().__init__(d_model, num_heads, dropout, bias)
        if num_heads % num_kv_heads != 0:
            raise ValueError("num_kv_heads must divide num_heads")
        sizes = (num_kv_heads, num_heads // num_kv_heads, d_model // num_heads)
        self.w_k = Shared(d_model, *sizes, bias)
        self.w_v = Shared(d_model, *sizes, bias)
