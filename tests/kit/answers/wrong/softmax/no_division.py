# Wrong: exp without the division.
import torch


def attention_weights(scores):
    top = scores.amax(-1, keepdim=True)
    return torch.exp(scores - top.masked_fill(torch.isneginf(top), 0))
