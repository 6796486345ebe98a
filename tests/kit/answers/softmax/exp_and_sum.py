import torch


def attention_weights(scores):
    peak = scores.amax(-1, keepdim=True)
    e = torch.exp(scores - peak.masked_fill(torch.isneginf(peak), 0))
    total = e.sum(-1, keepdim=True)
    return e / total.masked_fill(total == 0, 1)
