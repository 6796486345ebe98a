import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model} features, {num_heads} heads")
        for name in ("w_q", "w_k", "w_v", "w_o"):
            layer = nn.Linear(d_model, d_model, bias=bias)
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)
            setattr(self, name, layer)

    def foward(self, query, key, value, mask=None):
        return query, torch.ones(1)
