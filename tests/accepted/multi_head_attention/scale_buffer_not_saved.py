import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("d_model, num_heads")
        self.num_heads = num_heads
        self.register_buffer("scale", torch.tensor((d_model / num_heads) ** -0.5), persistent=False)
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)

    def forward(self, query, key, value, mask=None):
        H = self.num_heads
        q = self.w_q(query).tensor_split(H, dim=-1)
        k = self.w_k(key).tensor_split(H, dim=-1)
        v = self.w_v(value).tensor_split(H, dim=-1)
        scores = torch.stack([a @ b.mT for a, b in zip(q, k)], dim=1) * self.scale
        if mask is not None:
            allowed = mask.bool().expand(scores.shape)
            alive = allowed.any(-1)  # (B, H, Tq)
            filled = scores.masked_fill(~allowed, -torch.inf)
            weights = torch.zeros_like(scores)
            weights[alive] = torch.softmax(filled[alive], dim=-1)
        else:
            weights = torch.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        out = torch.cat([weights[:, h] @ v[h] for h in range(H)], dim=-1)
        return self.w_o(out), weights


if __name__ == "__main__":
    print(MultiHeadAttention(8, 2)(*[torch.randn(1, 3, 8)] * 3)[0])
