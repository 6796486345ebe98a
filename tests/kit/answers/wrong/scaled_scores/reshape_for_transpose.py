# Wrong: reshape to [B, H, d_k, Tk] instead of a transpose.
import math

def scaled_scores(q, k):
    B, H, Tk, d_k = k.shape
    return q @ k.reshape(B, H, d_k, Tk) / math.sqrt(d_k)
