# Wrong: zeros only where a head's whole table is blocked.
import torch


def attention_weights(scores):
    blocked = torch.isneginf(scores).all(-1, keepdim=True).all(-2, keepdim=True)
    return torch.softmax(scores.masked_fill(blocked, 0), -1).masked_fill(blocked, 0)
