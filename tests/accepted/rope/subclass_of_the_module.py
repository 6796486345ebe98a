import torch
from multi_head_attention import MultiHeadAttention
from torch import nn


def rope_angles(seq_len, d_k, base=10000.0, offset=0):
    if divmod(d_k, 2)[1]:
        raise ValueError("d_k")
    speeds = torch.logspace(0, -1 + 2 / d_k, d_k // 2, base, dtype=torch.float64)
    return torch.arange(offset, seq_len + offset, dtype=torch.float64).outer(speeds)


def apply_rope(x, angles):
    index = torch.arange(x.shape[-1], device=x.device)
    partner = x[..., index ^ 1]
    sign = torch.where(index % 2 == 0, -1.0, 1.0).to(x.dtype)
    wide = angles[:, (index // 2).cpu()]
    return x * wide.cos().to(x) + sign * partner * wide.sin().to(x)


class Turned(nn.Linear):
    """A layer whose output is turned head by head before it is handed on."""

    def __init__(self, d_model, d_k, bias, base):
        super().__init__(d_model, d_model, bias=bias)
        nn.init.xavier_uniform_(self.weight)
        if bias:
            nn.init.zeros_(self.bias)
        self.d_k, self.base = d_k, base

    def forward(self, x):
        heads = super().forward(x).unflatten(-1, (-1, self.d_k)).transpose(1, 2)
        angles = rope_angles(x.shape[1], self.d_k, self.base)
        return apply_rope(heads, angles).transpose(1, 2).flatten(2)


class RotaryMultiHeadAttention(MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True, base=10000.0):
        super().__init__(d_model, num_heads, dropout, bias)
        d_k = d_model // num_heads
        if d_k % 2 != 0:
            raise ValueError("d_k is odd")
        self.w_q = Turned(d_model, d_k, bias, base)
        self.w_k = Turned(d_model, d_k, bias, base)
