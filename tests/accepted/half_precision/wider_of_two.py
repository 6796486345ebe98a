import math

import torch


def stable_attention(q, k, v, mask=None):
    """float32 inside for the two halves; all else as it comes."""
    wide = q.dtype if torch.finfo(q.dtype).bits > 16 else torch.float32
    scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -math.inf)
    empty = (scores == -math.inf).all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)
    return (weights @ v.to(wide)).to(q.dtype)
