# exp without the shift overflows for large scores
import math
import torch
from torch import nn
import torch.nn.functional as F

def transpose_qkv(x, num_heads):
    B, T, D = x.shape
    return x.reshape(B, T, num_heads, -1).permute(0, 2, 1, 3).reshape(B * num_heads, T, -1)


def transpose_output(x, num_heads):
    BH, T, d = x.shape
    return x.reshape(-1, num_heads, T, d).permute(0, 2, 1, 3).reshape(-1, T, num_heads * d)


class ValidLensAttention(nn.Module):
    def __init__(self, num_hiddens, num_heads, dropout=0.0, bias=False):
        d_model = num_hiddens
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.d_model = d_model
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.w_q = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_k = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_v = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_o = nn.LazyLinear(num_hiddens, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        B, Tq = queries.shape[:2]
        Tk = keys.shape[1]
        q = transpose_qkv(self.w_q(queries), self.num_heads)
        k = transpose_qkv(self.w_k(keys), self.num_heads)
        v = transpose_qkv(self.w_v(values), self.num_heads)
        mask = None
        if valid_lens is not None:
            lens = valid_lens[:, None, None] if valid_lens.dim() == 1 else valid_lens[:, :, None]
            mask = torch.arange(Tk, device=q.device) < lens
            mask = mask.repeat_interleave(self.num_heads, 0)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        e = scores.exp()
        weights = e / e.sum(-1, keepdim=True).clamp_min(1e-9)
        weights = self.dropout(weights)
        return self.w_o(transpose_output(weights @ v, self.num_heads))
