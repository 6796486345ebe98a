# Wrong: takes an infinite row sum for a fully blocked row.
import torch


def attention_weights(scores):
    blocked = torch.isinf(scores.sum(-1, keepdim=True))
    return torch.softmax(scores.masked_fill(blocked, 0), -1).masked_fill(blocked, 0)
