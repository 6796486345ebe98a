# inf among the scores is replaced by the largest number
import math

import torch


def stable_attention(q, k, v, mask=None):
    dtype = v.dtype
    wide = torch.promote_types(dtype, torch.float32)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.nan_to_num().to(wide)
    v = v.to(wide)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    dead = (scores == float("-inf")).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(dead, 0.0), -1).masked_fill(dead, 0.0)
    return (weights @ v).to(dtype)
