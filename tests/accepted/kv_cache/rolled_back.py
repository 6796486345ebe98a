import torch
from torch import nn


class Memory(tuple):
    """A pair that knows how long it is."""

    def __new__(cls, k, v):
        return super().__new__(cls, (k, v))

    @property
    def length(self):
        return self[0].shape[2]


class CachedSelfAttention(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("uneven")
        self.h = num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.register_buffer("scale", torch.tensor((d_model // num_heads) ** -0.5), persistent=False)
        [nn.init.xavier_uniform_(m.weight) for m in (self.w_q, self.w_k, self.w_v, self.w_o)]
        if bias:
            [nn.init.zeros_(m.bias) for m in (self.w_q, self.w_k, self.w_v, self.w_o)]

    def forward(self, x, cache=None):
        B, N, D = x.shape
        parts = [torch.stack(w(x).chunk(self.h, -1), 1) for w in (self.w_q, self.w_k, self.w_v)]
        q, k, v = parts
        memory = Memory(k, v)
        if cache is not None:
            memory = Memory(*[torch.cat([old, new], dim=2) for old, new in zip(cache, memory)])
        k, v = memory
        first = memory.length - N
        scores = (q.unsqueeze(3) * k.unsqueeze(2)).sum(-1) * self.scale
        for i in range(N):
            scores[:, :, i, first + i + 1 :] = float("-inf")
        weights = torch.nn.functional.softmax(scores.float(), dim=-1).type_as(v)
        heads = (weights.unsqueeze(-1) * v.unsqueeze(2)).sum(3)
        return self.w_o(torch.cat(heads.unbind(1), -1)), memory
