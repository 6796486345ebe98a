import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self, d, f, p):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.w_in = nn.Linear(d, f)
        self.w_out = nn.Linear(f, d)
        self.dropout = nn.Dropout(p)

    def forward(self, x):
        return x + self.dropout(self.w_out(torch.nn.functional.gelu(self.w_in(self.norm(x)))))


class TransformerBlock(nn.Module):
    def __init__(self, attention, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.attention = attention
        self.mlp = MLP(d_model, d_ff, dropout)

    def forward(self, x, mask=None):
        h = self.norm(x)
        return self.mlp(x + self.attention(h, h, h, mask)[0])
