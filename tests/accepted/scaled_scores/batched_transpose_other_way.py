import math


def scaled_scores(q, k):
    if (d_k := q.shape[-1]) <= 0:
        raise TypeError("no features")
    flipped = k @ q.transpose(-1, -2)  # (B, H, Tk, Tq)
    return flipped.transpose(-1, -2).mul(1 / math.sqrt(d_k))
