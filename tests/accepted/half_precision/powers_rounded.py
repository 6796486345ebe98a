import math

import torch


def stable_attention(q, k, v, mask=None):
    """Rounded powers meet the values, divided by the unrounded sum, as a fused kernel does it."""
    B, H, Tq, d = q.shape
    wide = torch.promote_types(v.dtype, torch.float32)
    a = q.reshape(B * H, Tq, d).to(wide)
    b = k.reshape(B * H, -1, d).to(wide)
    c = v.reshape(B * H, -1, d)
    s = torch.bmm(a, b.transpose(1, 2)) / math.sqrt(d)
    if mask is not None:
        s = s.view(B, H, Tq, -1).masked_fill(mask == 0, -math.inf).flatten(0, 1)
    top = s.detach().amax(-1, keepdim=True).clamp(min=-1e30)
    e = torch.exp(s - top)
    total = e.sum(-1, keepdim=True).clamp(min=1e-20)
    return (torch.bmm(e.to(v.dtype).to(wide), c.to(wide)) / total).view(B, H, Tq, d).to(v.dtype)
