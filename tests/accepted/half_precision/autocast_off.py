import math
import torch
import torch.nn.functional as F


def stable_attention(q, k, v, mask=None):
    dtype = q.dtype
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    with torch.autocast(q.device.type, enabled=False):
        s = torch.matmul(q.to(wide), k.to(wide).mT).mul_(q.size(-1) ** -0.5)
        if mask is not None:
            s = torch.where(mask.bool(), s, s.new_tensor(-math.inf))
        top = s.amax(-1, keepdim=True).clamp_min(torch.finfo(wide).min)
        e = (s - top).exp()
        z = e.sum(-1, keepdim=True).clamp_min(torch.finfo(wide).tiny)
        return ((e / z) @ v.to(wide)).type_as(q)
