import torch


def attention_weights(scores):
    dead = (scores == -torch.inf).all(-1, keepdim=True)
    safe = scores.masked_fill(dead, 0).to(torch.promote_types(scores.dtype, torch.float32))
    logs = safe - torch.logsumexp(safe, dim=-1, keepdim=True)
    return logs.exp().masked_fill(dead, 0).to(scores.dtype)
