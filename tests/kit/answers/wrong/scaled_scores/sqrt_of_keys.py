# Wrong: the root of Tk, not of d_k.
import math

def scaled_scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(k.shape[-2])
