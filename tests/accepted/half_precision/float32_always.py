import math

import torch


def stable_attention(q, k, v, mask=None):
    """float32 inside, whatever comes: even float64."""
    scores = q.float() @ k.float().transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -math.inf)
    empty = (scores == -math.inf).all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)
    return (weights @ v.float()).to(q.dtype)
