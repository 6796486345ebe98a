# Wrong: drops keys of score 0 after the softmax, rows no longer sum to one.
import torch


def attention_weights(scores):
    blocked = torch.isneginf(scores).all(-1, keepdim=True)
    return torch.softmax(scores.masked_fill(blocked, 0), -1) * (scores != 0) * ~blocked
