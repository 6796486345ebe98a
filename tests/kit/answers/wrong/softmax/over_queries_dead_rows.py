# Wrong: softmax over the queries, blocked rows zero.
import torch


def attention_weights(scores):
    blocked = torch.isneginf(scores).all(-1, keepdim=True)
    dead = torch.isneginf(scores).all(-2, keepdim=True)
    return torch.softmax(scores.masked_fill(dead, 0), dim=2).masked_fill(blocked, 0)
