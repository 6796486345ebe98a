# Wrong: a row with one blocked key becomes zeros.
import torch


def attention_weights(scores):
    blocked = torch.isneginf(scores).any(-1, keepdim=True)
    return torch.softmax(scores.masked_fill(blocked, 0), -1).masked_fill(blocked, 0)
