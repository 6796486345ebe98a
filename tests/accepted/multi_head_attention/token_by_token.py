import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    """One query at a time; slow, but every step can be read."""

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model / num_heads is not whole")
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for weight in (self.w_q.weight, self.w_k.weight, self.w_v.weight, self.w_o.weight):
            nn.init.xavier_uniform_(weight)
        if bias:
            for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
                nn.init.zeros_(layer.bias)

    def forward(self, query, key, value, mask=None):
        B, Tq, D = query.shape
        H, Tk = self.num_heads, key.shape[1]
        q = self.w_q(query).view(B, Tq, H, D // H)
        k = self.w_k(key).view(B, Tk, H, D // H)
        v = self.w_v(value).view(B, Tk, H, D // H)
        outputs, rows = [], []
        for t in range(Tq):
            scores = (q[:, t : t + 1] * k).sum(-1).transpose(1, 2) / (D // H) ** 0.5  # (B, H, Tk)
            if mask is not None:
                allowed = mask.expand(B, H, Tq, Tk)[:, :, t] != 0
                dead = ~allowed.any(-1, keepdim=True)
                scores = scores.masked_fill(~allowed & ~dead, float("-inf"))
                row = scores.softmax(-1).masked_fill(dead, 0.0)
            else:
                row = scores.softmax(-1)
            row = self.dropout(row)
            rows.append(row)
            outputs.append(torch.einsum("bhk,bkhd->bhd", row, v).reshape(B, D))
        return self.w_o(torch.stack(outputs, 1)), torch.stack(rows, 2)
