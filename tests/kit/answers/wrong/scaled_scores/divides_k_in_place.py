# Wrong: k is divided in place.
import math
import torch

def scaled_scores(q, k):
    with torch.no_grad():
        k.mul_(1 / math.sqrt(k.size(-1)))
    return q @ k.transpose(-2, -1)
