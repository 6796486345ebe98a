import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model} features for {num_heads} heads")
        self.H = num_heads
        for name in ("w_q", "w_k", "w_v", "w_o"):
            layer = nn.Linear(d_model, d_model, bias=bias)
            nn.init.xavier_normal_(layer.weight)
            if bias:
                layer.bias.data.zero_()
            setattr(self, name, layer)

    def forward(self, x, cache=None):
        B, N, D = x.shape
        q, k, v = (layer(x).view(B, N, self.H, -1) for layer in (self.w_q, self.w_k, self.w_v))
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        if cache:
            k = torch.cat((cache[0], k), 2)
            v = torch.cat((cache[1], v), 2)
        T = k.size(2)
        scores = torch.einsum("bnhd,bhtd->bhnt", q, k) * (D // self.H) ** -0.5
        late = torch.ones(N, T, device=x.device, dtype=torch.bool).triu(1 + T - N)
        scores = scores.masked_fill(late, -torch.inf)
        e = torch.exp(scores - scores.amax(-1, keepdim=True))
        out = torch.einsum("bhnt,bhtd->bnhd", e / e.sum(-1, keepdim=True), v)
        return self.w_o(out.reshape(B, N, D)), (k, v)
