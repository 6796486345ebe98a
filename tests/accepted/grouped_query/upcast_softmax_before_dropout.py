import math

import torch
from torch import nn


def repeat_kv(x, n_rep):
    b, heads, t, d = x.shape
    if n_rep == 1:
        return x
    return x[:, :, None].expand(b, heads, n_rep, t, d).reshape(b, heads * n_rep, t, d)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, num_heads, num_kv_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0 or num_heads % num_kv_heads != 0:
            raise ValueError("heads")
        self.head_dim = d_model // num_heads
        self.n_rep = num_heads // num_kv_heads
        self.w_q = nn.Linear(d_model, num_heads * self.head_dim, bias=bias)
        self.w_k = nn.Linear(d_model, num_kv_heads * self.head_dim, bias=bias)
        self.w_v = nn.Linear(d_model, num_kv_heads * self.head_dim, bias=bias)
        self.w_o = nn.Linear(num_heads * self.head_dim, d_model, bias=bias)
        self.attn_dropout = nn.Dropout(dropout)
        with torch.no_grad():
            for m in (self.w_q, self.w_k, self.w_v, self.w_o):
                m.weight.normal_(0.0, math.sqrt(2 / (m.in_features + m.out_features)))
                if m.bias is not None:
                    m.bias.zero_()

    def forward(self, query, key, value, mask=None):
        bsz, q_len, _ = query.shape
        xq = self.w_q(query).view(bsz, q_len, -1, self.head_dim).transpose(1, 2)
        xk = self.w_k(key).view(bsz, key.shape[1], -1, self.head_dim).transpose(1, 2)
        xv = self.w_v(value).view(bsz, value.shape[1], -1, self.head_dim).transpose(1, 2)
        xk, xv = repeat_kv(xk, self.n_rep), repeat_kv(xv, self.n_rep)
        scores = torch.matmul(xq, xk.transpose(2, 3)) * self.head_dim**-0.5
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), -math.inf)
        empty = (scores == -math.inf).all(-1, keepdim=True)
        attn = torch.softmax(scores.float().masked_fill(empty, 0.0), dim=-1).type_as(xq)
        attn = attn.masked_fill(empty, 0.0)
        out = torch.matmul(self.attn_dropout(attn), xv)
        return self.w_o(out.transpose(1, 2).contiguous().view(bsz, q_len, -1)), attn
