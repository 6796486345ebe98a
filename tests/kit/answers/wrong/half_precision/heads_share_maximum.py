# the softmax is shifted by the maximum over the heads
import math

import torch


def stable_attention(q, k, v, mask=None):
    dtype = v.dtype
    wide = torch.promote_types(dtype, torch.float32)
    q, k, v = q.to(wide), k.to(wide), v.to(wide)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    dead = (scores == float("-inf")).all(-1, keepdim=True)
    top = scores.masked_fill(dead, -3e38).amax(dim=(1, 3), keepdim=True)
    powers = (scores - top).exp()
    weights = powers / powers.sum(-1, keepdim=True).clamp(min=1e-30)
    return (weights @ v).to(dtype)
