import math


def scaled_score(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
