import torch


def attention_weights(scores):
    blocked = torch.isneginf(scores).all(dim=-1, keepdim=True)  # (B, H, Tq, 1)
    weights = torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1)
    return weights.masked_fill(blocked, 0.0)
