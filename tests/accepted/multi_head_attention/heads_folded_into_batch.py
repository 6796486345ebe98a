import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("heads")
        self.num_heads = num_heads
        self.dropout = nn.Dropout(dropout)
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                m.bias is None or nn.init.zeros_(m.bias)

    def fold(self, x):  # (B, T, D) -> (B * H, T, d_k)
        B, T, D = x.shape
        x = x.reshape(B, T, self.num_heads, D // self.num_heads).permute(0, 2, 1, 3)
        return x.reshape(B * self.num_heads, T, -1)

    def forward(self, query, key, value, mask=None):
        B, Tq, D = query.shape
        Tk, H = key.size(1), self.num_heads
        q, k, v = self.fold(self.w_q(query)), self.fold(self.w_k(key)), self.fold(self.w_v(value))
        base = q.new_zeros(1, 1, 1)
        scale = (D // H) ** -0.5
        scores = torch.baddbmm(base, q, k.transpose(1, 2), beta=0, alpha=scale)  # (B * H, Tq, Tk)
        if mask is not None:
            blocked = mask.expand(B, H, Tq, Tk).reshape(B * H, Tq, Tk) == 0
            dead = blocked.all(-1, keepdim=True)
            scores = scores.masked_fill(blocked & ~dead, float("-inf"))
            weights = scores.softmax(-1).masked_fill(dead, 0.0)
        else:
            weights = scores.softmax(-1)
        weights = self.dropout(weights)
        heads = torch.bmm(weights, v).view(B, H, Tq, -1).transpose(1, 2)
        return self.w_o(heads.reshape(B, Tq, D)), weights.view(B, H, Tq, Tk)
