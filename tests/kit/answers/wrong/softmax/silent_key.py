# Wrong: softmax with a silent extra key (softmax1).
import torch


def attention_weights(scores):
    top = scores.amax(-1, keepdim=True).clamp(min=0)
    e = torch.exp(scores - top)
    return e / (e.sum(-1, keepdim=True) + torch.exp(-top))
