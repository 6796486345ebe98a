# Wrong: a blocked row looks at the first key.
import torch


def attention_weights(scores):
    blocked = torch.isneginf(scores).all(-1, keepdim=True)
    safe = scores.masked_fill(blocked, 0)
    w = torch.softmax(safe, -1)
    first = torch.zeros_like(w)
    first[..., 0] = 1
    return torch.where(blocked, first, w)
