import torch
import torch.nn.functional as F
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        with torch.no_grad():
            for name, p in self.named_parameters():
                if name.endswith("bias"):
                    p.zero_()
                else:
                    p.normal_(0, d_model**-0.5)

    def grown(self, old, new):
        """Room for all tokens, filled from both sides."""
        B, H, N, d_k = new.shape
        P = 0 if old is None else old.shape[2]
        room = new.new_empty(B, H, P + N, d_k)
        if P:
            room[:, :, :P] = old
        room[:, :, P:] = new
        return room

    def forward(self, x, cache=None):
        # one product for all three projections
        layers = (self.w_q, self.w_k, self.w_v)
        bias = None if self.w_q.bias is None else torch.cat([w.bias for w in layers])
        packed = F.linear(x, torch.cat([w.weight for w in layers]), bias)
        q, k, v = packed.unflatten(2, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        old_k, old_v = (None, None) if cache is None else cache
        k, v = self.grown(old_k, k), self.grown(old_v, v)
        if x.shape[1] == 1:  # one token, at the end: nothing to hide
            y = F.scaled_dot_product_attention(q, k, v)
        elif cache is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=x.device)
            y = F.scaled_dot_product_attention(q, k, v, seen.tril(k.shape[2] - q.shape[2]))
        return self.w_o(y.transpose(1, 2).flatten(2)), (k, v)
