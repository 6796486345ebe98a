# Köpfe im Batch gefaltet ✓
import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        if d_model % num_heads:
            raise ValueError("d_model muss durch num_heads teilbar sein")
        super().__init__()
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (
            nn.Linear(d_model, d_model, bias=bias) for _ in range(4)
        )
        self.apply(self._init)

    @staticmethod
    def _init(m):
        if isinstance(m, nn.Linear):
            nn.init.xavier_uniform_(m.weight)
            if m.bias is not None:
                m.bias.data.fill_(0.0)

    def fold(self, x):
        B, T, _ = x.shape
        x = x.reshape(B, T, self.num_heads, self.d_k).permute(0, 2, 1, 3)
        return x.reshape(B * self.num_heads, T, self.d_k)

    def forward(self, x, cache=None):
        B, N, D = x.shape
        q, k, v = map(self.fold, (self.w_q(x), self.w_k(x), self.w_v(x)))
        if cache is not None:
            k = torch.cat([cache[0].flatten(0, 1), k], 1)
            v = torch.cat([cache[1].flatten(0, 1), v], 1)
        P = k.shape[1] - N
        bias = torch.full((N, P + N), float("-inf"), dtype=x.dtype, device=x.device).triu(P + 1)
        weights = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=self.d_k**-0.5).softmax(2)
        out = torch.bmm(weights, v).view(B, self.num_heads, N, self.d_k)
        new = tuple(t.view(B, self.num_heads, -1, self.d_k) for t in (k, v))
        return self.w_o(out.transpose(1, 2).reshape(B, N, D)), new
