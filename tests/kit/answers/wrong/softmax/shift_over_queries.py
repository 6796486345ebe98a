# Wrong: the maximum of the column, not of the row.
import torch


def attention_weights(scores):
    top = scores.amax(-2, keepdim=True)
    top = top.masked_fill(torch.isneginf(top), 0)
    e = torch.exp(scores - top)
    total = e.sum(-1, keepdim=True)
    return e / total.masked_fill(total == 0, 1)
