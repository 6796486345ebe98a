import torch


def attention_weights(scores):
    dead = (scores == -torch.inf).all(-1, keepdim=True)
    safe = scores.masked_fill(dead, 0)
    logs = safe - torch.logsumexp(safe, dim=-1, keepdim=True)
    return logs.exp().masked_fill(dead, 0)
