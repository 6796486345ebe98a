# The scores are clamped to -10 and 10
import math
import torch
import torch.nn.functional as F


def scaled_scores(q, k):
    d = q.shape[-1]
    return (q @ k.mT / math.sqrt(d)).clamp(-10, 10)
