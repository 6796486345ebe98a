import torch
from torch import nn

from concat_heads import concat_heads
from masking import apply_mask
from scaled_scores import scaled_scores
from softmax import attention_weights
from split_heads import split_heads


def rope_angles(seq_len, d_k, base=10000.0, offset=0):
    if d_k % 2 != 0:
        raise ValueError("d_k is odd")
    i = torch.arange(d_k // 2, dtype=torch.float64)
    t = torch.arange(seq_len, dtype=torch.float64) + offset
    return t[:, None] * base ** (-2 * i / d_k)


def rotate_neighbours(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def apply_rope(x, angles):
    angles = angles.to(device=x.device).view(-1, 1).repeat(1, 2).view(len(angles), -1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return x * cos + rotate_neighbours(x) * sin


class RotaryMultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True, base=10000.0):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("num_heads does not divide d_model")
        rope_angles(0, d_model // num_heads)  # refuses an odd d_k
        self.H, self.p, self.base = num_heads, dropout, base
        for name in ("w_q", "w_k", "w_v", "w_o"):
            layer = nn.Linear(d_model, d_model, bias=bias)
            nn.init.xavier_normal_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)
            self.add_module(name, layer)

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            split_heads(layer(x), self.H)
            for layer, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        longest = rope_angles(max(q.shape[2], k.shape[2]), q.shape[3], self.base)
        q, k = apply_rope(q, longest[: q.shape[2]]), apply_rope(k, longest[: k.shape[2]])
        weights = attention_weights(apply_mask(scaled_scores(q, k), mask))
        weights = nn.functional.dropout(weights, self.p, self.training)
        return self.w_o(concat_heads(weights @ v)), weights
