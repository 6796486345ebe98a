import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("heads")
        self.heads = num_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            layer = nn.Linear(d_model, d_model, bias=bias)
            nn.init.xavier_uniform_(layer.weight)
            if bias:
                nn.init.zeros_(layer.bias)
            setattr(self, name, layer)

    def forward(self, x, cache=None):
        b, n, d = x.shape
        q, k, v = (
            layer(x).view(b, n, self.heads, d // self.heads).transpose(1, 2)
            for layer in (self.w_q, self.w_k, self.w_v)
        )
        past = cache if cache is not None else (k[:, :, :0], v[:, :, :0])
        k, v = (torch.cat(pair, dim=2) for pair in zip(past, (k, v)))
        scores = q @ k.transpose(2, 3) * (d // self.heads) ** -0.5
        # only the last columns have tokens that are too late
        scores[..., -n:] += torch.full((n, n), float("-inf"), device=x.device).triu(1)
        context = scores.softmax(dim=-1) @ v
        return self.w_o(context.transpose(1, 2).reshape(b, n, d)), (k, v)
