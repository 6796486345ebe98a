import torch


def attention_weights(scores):
    lowest = torch.finfo(scores.dtype).min
    allowed = scores != float("-inf")
    weights = torch.softmax(scores.masked_fill(~allowed, lowest), dim=-1)
    return weights * allowed
