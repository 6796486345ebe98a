from torch import nn

from layer_norm import LayerNorm
from residual_mlp import ResidualMLP


class TransformerBlock(nn.Module):
    def __init__(self, attention, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.norm, self.attention = LayerNorm(d_model), attention
        self.mlp = ResidualMLP(d_model, d_ff, dropout)

    def attend(self, x, mask):
        x = self.norm(x)
        output, _weights = self.attention(x, x, x, mask)
        return output

    def forward(self, x, mask=None):
        return self.mlp(self.attend(x, mask) + x)
