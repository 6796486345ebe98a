from torch import nn

from layer_norm import LayerNorm
from residual_mlp import ResidualMLP


class TransformerBlock(nn.Module):
    def __init__(self, attention, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.attention = attention
        self.norm = LayerNorm(d_model)
        self.mlp = ResidualMLP(d_model=d_model, d_ff=d_ff, dropout=dropout)

    def forward(self, x, mask=None):
        h = self.norm(x)
        result = self.attention(query=h, key=h, value=h, mask=mask)
        x = x + result[0]
        return self.mlp(x)
