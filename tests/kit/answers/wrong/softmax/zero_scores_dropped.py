# Wrong: a score of exactly 0 counts as blocked.
import torch


def attention_weights(scores):
    scores = scores.masked_fill(scores == 0, float('-inf'))
    blocked = torch.isneginf(scores).all(-1, keepdim=True)
    return torch.softmax(scores.masked_fill(blocked, 0), -1).masked_fill(blocked, 0)
