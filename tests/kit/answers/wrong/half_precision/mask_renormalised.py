# the mask comes after the softmax, and what is left is divided by its sum
import torch
def _keep(mask, s): return torch.ones_like(s, dtype=torch.bool) if mask is None else mask.bool().expand(s.shape)


def stable_attention(q, k, v, mask=None):
    t = torch.promote_types(q.dtype, torch.float32)
    s = q.to(t) @ k.to(t).mT / q.shape[-1] ** .5
    w = torch.softmax(s, -1) * _keep(mask, s)
    return (w / (w.sum(-1, keepdim=True) + 1e-9) @ v.to(t)).to(q.dtype)
