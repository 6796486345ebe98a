import torch
import torch.nn.functional as F
from torch import nn


def transpose_qkv(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2).flatten(0, 1)


def transpose_output(x, num_heads):
    return x.unflatten(0, (-1, num_heads)).transpose(1, 2).flatten(2)


class ValidLensAttention(nn.Module):
    def __init__(self, num_hiddens, num_heads, dropout=0.0, bias=False):
        super().__init__()
        if num_hiddens % num_heads:
            raise ValueError
        self.num_heads, self.dropout = num_heads, dropout
        self.w_q, self.w_k, self.w_v, self.w_o = (
            nn.LazyLinear(num_hiddens, bias=bias) for _ in range(4)
        )

    def forward(self, queries, keys, values, valid_lens=None):
        q, k, v = (
            transpose_qkv(w(x), self.num_heads)
            for w, x in ((self.w_q, queries), (self.w_k, keys), (self.w_v, values))
        )
        mask = None
        if valid_lens is not None:
            lens = valid_lens if valid_lens.ndim == 2 else valid_lens.unsqueeze(1)
            lens = lens.repeat_interleave(self.num_heads, 0).unsqueeze(-1)
            mask = torch.arange(k.shape[1], device=k.device) < lens
        p = self.dropout if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
        return self.w_o(transpose_output(out, self.num_heads))
