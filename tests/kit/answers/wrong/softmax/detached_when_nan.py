# Wrong: detaches everything as soon as one row is blocked.
import torch


def attention_weights(scores):
    blocked = torch.isneginf(scores).all(-1, keepdim=True)
    w = torch.softmax(scores.masked_fill(blocked, 0), -1).masked_fill(blocked, 0)
    return w.detach() if blocked.any() else w
