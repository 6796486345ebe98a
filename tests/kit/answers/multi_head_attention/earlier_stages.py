from concat_heads import concat_heads
from masking import apply_mask
from scaled_scores import scaled_scores
from softmax import attention_weights
from split_heads import split_heads
from torch import nn
import torch


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("uneven heads")
        self.num_heads = num_heads
        self.dropout = nn.Dropout(dropout)
        for name in ("w_q", "w_k", "w_v", "w_o"):
            layer = nn.Linear(d_model, d_model, bias=bias)
            nn.init.xavier_normal_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)
            setattr(self, name, layer)

    def forward(self, query, key, value, mask=None):
        q = split_heads(self.w_q(query), self.num_heads)
        k = split_heads(self.w_k(key), self.num_heads)
        v = split_heads(self.w_v(value), self.num_heads)
        scores = apply_mask(scaled_scores(q, k), mask)
        weights = self.dropout(attention_weights(scores))
        output = self.w_o(concat_heads(weights @ v))
        return output, weights
