from torch import nn

from gelu import gelu
from layer_norm import LayerNorm


class ResidualMLP(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.norm = LayerNorm(d_model)
        self.w_in = nn.Linear(d_model, d_ff)
        self.w_out = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        h = self.norm(x)
        h = self.w_in(h)
        h = gelu(h)
        h = self.w_out(h)
        h = self.drop(h)
        return h + x
