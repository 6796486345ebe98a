# Wrong: the parameter is called x.
import torch


def attention_weights(x):
    blocked = torch.isneginf(x).all(-1, keepdim=True)
    return torch.softmax(x.masked_fill(blocked, 0), -1).masked_fill(blocked, 0)
