# Maske als flacher Puffer – auch context_size² Elemente
import torch
import torch.nn.functional as F
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, d_in, d_out, context_size, num_heads, dropout=0.0, qkv_bias=False):
        if d_out % num_heads != 0:
            raise ValueError("d_out % num_heads")
        super().__init__()
        self.C = context_size
        self.H = num_heads
        self.w_q = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_k = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_v = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_o = nn.Linear(d_out, d_out)
        self.attn_dropout = nn.Dropout(dropout, inplace=False)
        i = torch.arange(context_size)
        self.register_buffer("blocked", (i[None] > i[:, None]).flatten())
        self.register_buffer("scale", torch.tensor((d_out // num_heads) ** -0.5), persistent=False)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def fold(self, x):
        B, T, D = x.shape
        return x.reshape(B, T, self.H, D // self.H).permute(0, 2, 1, 3).reshape(B * self.H, T, -1)

    def forward(self, x):
        B, T, _ = x.shape
        if T > self.C:
            raise ValueError("Text zu lang")
        weight = torch.cat([self.w_q.weight, self.w_k.weight, self.w_v.weight])
        bias = None
        if self.w_q.bias is not None:
            bias = torch.cat([self.w_q.bias, self.w_k.bias, self.w_v.bias])
        q, k, v = map(self.fold, F.linear(x, weight, bias).chunk(3, dim=-1))
        blocked = self.blocked.view(self.C, self.C).narrow(0, 0, T).narrow(1, 0, T)
        scores = torch.bmm(q * self.scale, k.mT).masked_fill_(blocked, float("-inf"))
        weights = self.attn_dropout(F.softmax(scores, dim=-1, dtype=torch.float32).type_as(v))
        out = torch.bmm(weights, v).unflatten(0, (B, self.H)).transpose(1, 2).flatten(2)
        return self.w_o(out)
