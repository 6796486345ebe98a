# Längen als addierte Maske ✓ – der Softmax rechnet in float32
import torch
import torch.nn.functional as F
from torch import nn


def transpose_qkv(x, num_heads):
    batch, length, features = x.size()
    x = x.contiguous().view(batch, length, num_heads, features // num_heads)
    return x.transpose(1, 2).reshape(batch * num_heads, length, features // num_heads)


def transpose_output(x, num_heads):
    folded, length, d_k = x.size()
    out = x.new_empty(folded // num_heads, length, num_heads * d_k)
    for h in range(num_heads):
        out[:, :, h * d_k : (h + 1) * d_k] = x[h::num_heads]
    return out


class ValidLensAttention(nn.Module):
    def __init__(self, num_hiddens, num_heads, dropout=0.0, bias=False):
        super().__init__()
        self.d_k, rest = divmod(num_hiddens, num_heads)
        if rest:
            raise ValueError("num_hiddens, num_heads")
        self.num_heads = num_heads
        self.w_q = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_k = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_v = nn.LazyLinear(num_hiddens, bias=bias)
        self.w_o = nn.LazyLinear(num_hiddens, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("scale", torch.tensor(self.d_k**-0.5), persistent=False)

    def forward(self, queries, keys, values, valid_lens=None):
        q, k, v = self.w_q(queries), self.w_k(keys), self.w_v(values)
        q, k, v = (transpose_qkv(x, self.num_heads) for x in (q * self.scale, k, v))
        n, tq, tk = q.shape[0], q.shape[1], k.shape[1]
        bias = torch.zeros(n, tq, tk, dtype=q.dtype, device=q.device)
        alive = 1.0
        if valid_lens is not None:
            lens = valid_lens.view(-1, 1) if valid_lens.dim() == 1 else valid_lens
            lens = lens.expand(-1, tq)[:, None].expand(-1, self.num_heads, tq).reshape(n, tq, 1)
            position = torch.arange(tk, device=q.device)
            bias = bias.masked_fill(position >= lens.clamp(min=1), float("-inf"))
            alive = (lens > 0).to(q.dtype)
        scores = torch.baddbmm(bias, q, k.mT)
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).type_as(v) * alive
        return self.w_o(transpose_output(self.dropout(weights) @ v, self.num_heads))
