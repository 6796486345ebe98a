# Wrong: one softmax over the whole table of a head.
import torch


def attention_weights(scores):
    blocked = torch.isneginf(scores).all(-1, keepdim=True)
    flat = scores.masked_fill(blocked, 0).flatten(2)
    return torch.softmax(flat, -1).view_as(scores).masked_fill(blocked, 0)
