# blocks of 512 keys are averaged as if they weighed the same
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
    parts = []
    for s, rows in zip(scores.split(512, -1), v.split(512, -2)):
        gone = (s == float("-inf")).all(-1, keepdim=True)
        parts.append(torch.softmax(s.masked_fill(gone, 0.0), -1).masked_fill(gone, 0.0) @ rows)
    return (sum(parts) / len(parts)).to(dtype)
