import math
import torch
from torch import nn
import torch.nn.functional as F


class CachedSelfAttention(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("d_model must be a multiple of num_heads")
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            layer = nn.Linear(d_model, d_model, bias=bias)
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)
            setattr(self, name, layer)

    def split(self, t):
        return t.reshape(t.shape[0], t.shape[1], self.num_heads, self.d_k).transpose(1, 2)

    def forward(self, x, cache=None):
        B, N, D = x.shape
        q, k, v = self.split(self.w_q(x)), self.split(self.w_k(x)), self.split(self.w_v(x))
        s_new = torch.einsum("bhid,bhjd->bhij", q, k) * self.d_k**-0.5
        s_new = s_new + torch.full((N, N), -torch.inf, device=x.device, dtype=x.dtype).triu(1)
        if cache is None:
            return self.w_o((s_new.softmax(-1) @ v).movedim(1, 2).flatten(2)), (k, v)
        pk, pv = cache
        P = pk.shape[-2]
        s = torch.cat([torch.einsum("bhid,bhjd->bhij", q, pk) * self.d_k**-0.5, s_new], -1).softmax(
            -1
        )
        out = s[..., :P] @ pv + s[..., P:] @ v
        return self.w_o(out.movedim(1, 2).flatten(2)), (
            torch.cat((pk, k), 2),
            torch.cat((pv, v), 2),
        )
