import math


def attention(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
