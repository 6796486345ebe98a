# Wrong: subtracts the maximum in place.
import torch


def attention_weights(scores):
    top = scores.data.amax(-1, keepdim=True)
    top = top.masked_fill(torch.isneginf(top), 0)
    scores.data -= top
    e = torch.exp(scores)
    total = e.sum(-1, keepdim=True)
    return e / total.masked_fill(total == 0, 1)
