# Wrong: softmax over the queries.
import torch


def attention_weights(scores):
    blocked = torch.isneginf(scores).all(-2, keepdim=True)
    return torch.softmax(scores.masked_fill(blocked, 0), dim=-2).masked_fill(blocked, 0)
