import torch
def _keep(mask, s): return torch.ones_like(s, dtype=torch.bool) if mask is None else mask.bool().expand(s.shape)


def stable_attention(q, k, v, mask=None):
    t = torch.promote_types(q.dtype, torch.float32)
    s = q.to(t) @ k.to(t).mT / q.shape[-1] ** .5
    return (torch._safe_softmax(s.masked_fill(~_keep(mask, s), -torch.inf), -1) @ v.to(t)).to(q.dtype)
