import torch


def stable_attention(q, k, v, mask=None):
    a, b, c = (x.double() if x.device.type != "mps" else x.float() for x in (q, k, v))
    scores = (a.unsqueeze(3) * b.unsqueeze(2)).sum(-1) / a.shape[-1] ** 0.5
    keep = torch.ones_like(scores) if mask is None else mask.to(scores.dtype).expand_as(scores)
    top = scores.masked_fill(keep == 0, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
    e = torch.exp((scores - top).clamp(max=0.0)) * keep
    weights = e / e.sum(-1, keepdim=True).clamp(min=1e-12)
    return torch.matmul(weights, c).to(v.dtype)
