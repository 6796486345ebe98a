# Wrong: scores below -1e4 count as blocked.
import torch


def attention_weights(scores):
    low = scores < -1e4
    blocked = low.all(-1, keepdim=True)
    return torch.softmax(scores.masked_fill(low, float('-inf')).masked_fill(blocked, 0), -1).masked_fill(blocked, 0)
