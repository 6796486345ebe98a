# Wrong: one-hot of the largest score.
import torch


def attention_weights(scores):
    blocked = torch.isneginf(scores).all(-1, keepdim=True)
    out = torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)
    return out.masked_fill(blocked, 0)
