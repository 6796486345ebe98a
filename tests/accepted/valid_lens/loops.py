import torch
from torch import nn


def transpose_qkv(x, num_heads):
    B, T, D = x.shape
    d = D // num_heads
    return torch.stack([x[b, :, h * d : (h + 1) * d] for b in range(B) for h in range(num_heads)])


def transpose_output(x, num_heads):
    rows = []
    for b in range(len(x) // num_heads):
        rows.append(torch.cat([x[b * num_heads + h] for h in range(num_heads)], dim=1))
    return torch.stack(rows)


class ValidLensAttention(nn.Module):
    # one query at a time, over the keys that are valid for it

    def __init__(self, num_hiddens, num_heads, dropout=0.0, bias=False):
        if num_hiddens % num_heads != 0:
            raise ValueError("heads")
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.LazyLinear(num_hiddens, bias)
        self.w_k = nn.LazyLinear(num_hiddens, bias)
        self.w_v = nn.LazyLinear(num_hiddens, bias)
        self.w_o = nn.LazyLinear(num_hiddens, bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        q = transpose_qkv(self.w_q(queries), self.num_heads)
        k = transpose_qkv(self.w_k(keys), self.num_heads)
        v = transpose_qkv(self.w_v(values), self.num_heads)
        out = []
        for n in range(len(q)):
            rows = []
            for i in range(q.shape[1]):
                end = k.shape[1]
                if valid_lens is not None:
                    length = valid_lens[n // self.num_heads]
                    end = int(length[i] if length.dim() else length)
                if end == 0:
                    rows.append(torch.zeros_like(v[n, 0]))
                    continue
                scores = (k[n, :end] @ q[n, i]) / q.shape[-1] ** 0.5
                rows.append(self.dropout(scores.softmax(0)) @ v[n, :end])
            out.append(torch.stack(rows))
        return self.w_o(transpose_output(torch.stack(out), self.num_heads))
