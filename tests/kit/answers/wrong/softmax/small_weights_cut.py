# Wrong: weights below 1e-3 become 0.
import torch


def attention_weights(scores):
    blocked = torch.isneginf(scores).all(-1, keepdim=True)
    w = torch.softmax(scores.masked_fill(blocked, 0), -1).masked_fill(blocked, 0)
    return w * (w > 1e-3)
