import torch
from torch import nn

from concat_heads import concat_heads
from masking import apply_mask
from scaled_scores import scaled_scores
from softmax import attention_weights
from split_heads import split_heads


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0 or num_heads % num_kv_heads != 0:
            raise ValueError("sizes")
        self.H, self.G = num_heads, num_kv_heads
        narrow = d_model // num_heads * num_kv_heads
        self.w_q, self.w_o = (nn.Linear(d_model, d_model, bias=bias) for _ in range(2))
        self.w_k, self.w_v = (nn.Linear(d_model, narrow, bias=bias) for _ in range(2))
        self.p = dropout
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
            else:
                nn.init.zeros_(p)

    def share(self, x):
        x = split_heads(x, self.G)  # (B, G, T, d_k)
        return torch.stack([x] * (self.H // self.G), dim=2).flatten(1, 2)

    def forward(self, query, key, value, mask=None):
        q = split_heads(self.w_q(query), self.H)
        k, v = self.share(self.w_k(key)), self.share(self.w_v(value))
        weights = attention_weights(apply_mask(scaled_scores(q, k), mask))
        weights = nn.functional.dropout(weights, self.p, self.training)
        return self.w_o(concat_heads(weights @ v)), weights
