import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    """A group's queries stand one below the other and meet their keys in one bmm."""

    def __init__(self, d_model, num_heads, num_kv_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads or num_heads % num_kv_heads:
            raise ValueError("bad sizes")
        self.H, self.N, self.d = num_heads, num_kv_heads, d_model // num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, self.N * self.d, bias=bias)
        self.w_v = nn.Linear(d_model, self.N * self.d, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.apply(self.start)

    @staticmethod
    def start(layer):
        if isinstance(layer, nn.Linear):
            bound = (6 / (layer.in_features + layer.out_features)) ** 0.5
            nn.init.uniform_(layer.weight, -bound, bound)
            if layer.bias is not None:
                nn.init.constant_(layer.bias, 0.0)

    def fold(self, x):  # (B, T, heads * d) -> (B * N, heads / N * T, d)
        B, T, _ = x.shape
        x = x.view(B, T, self.N, -1, self.d).permute(0, 2, 3, 1, 4)
        return x.reshape(B * self.N, -1, self.d)

    def forward(self, query, key, value, mask=None):
        B, Tq, D = query.shape
        q, k, v = self.fold(self.w_q(query)), self.fold(self.w_k(key)), self.fold(self.w_v(value))
        scores = torch.bmm(q * self.d**-0.5, k.mT).view(B, self.H, Tq, -1)
        if mask is not None:
            blocked = (mask == 0).expand_as(scores)
            empty = blocked.all(-1, keepdim=True)
            scores = scores.masked_fill(blocked & ~empty, float("-inf"))
            weights = scores.softmax(-1) * (~empty)
        else:
            weights = scores.softmax(-1)
        weights = self.dropout(weights)
        mixed = torch.bmm(weights.reshape(B * self.N, -1, k.shape[1]), v)
        mixed = mixed.view(B, self.H, Tq, self.d).movedim(1, 2)
        return self.w_o(mixed.flatten(2)), weights
