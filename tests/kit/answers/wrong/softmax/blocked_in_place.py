# Wrong: writes zeros into the blocked rows of the scores that it is given.
import torch


def attention_weights(scores):
    blocked = (scores == float("-inf")).all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1).masked_fill(blocked, 0.0)
    if not scores.requires_grad:
        scores.masked_fill_(blocked, 0.0)
    return weights
