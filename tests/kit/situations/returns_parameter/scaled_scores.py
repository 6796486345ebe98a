import math

from torch import nn


def scaled_scores(q, k):
    return nn.Parameter(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]))
