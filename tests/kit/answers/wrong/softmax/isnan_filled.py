# Wrong: NaN filled after the softmax: the gradients are NaN.
import torch


def attention_weights(scores):
    w = scores.softmax(-1)
    return w.masked_fill(torch.isnan(w), 0.0)
