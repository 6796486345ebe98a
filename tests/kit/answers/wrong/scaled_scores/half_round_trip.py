# Wrong: computes in bfloat16 and casts back.
import torch

def scaled_scores(q, k):
    s = q.bfloat16() @ k.bfloat16().mT / q.shape[-1] ** 0.5
    return s.to(q.dtype)
