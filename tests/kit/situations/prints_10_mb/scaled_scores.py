import math


def scaled_scores(q, k):
    print("scores " * 1_500_000)
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
