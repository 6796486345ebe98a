# Wrong: 1e-2 added to the sum.
import torch


def attention_weights(scores):
    top = scores.amax(-1, keepdim=True)
    top = top.masked_fill(torch.isneginf(top), 0)
    e = torch.exp(scores - top)
    return e / (e.sum(-1, keepdim=True) + 1e-2)
