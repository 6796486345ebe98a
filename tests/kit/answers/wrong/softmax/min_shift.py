# Wrong: subtracts the minimum, so large differences overflow.
import torch


def attention_weights(scores):
    finite = scores.masked_fill(torch.isneginf(scores), float('inf'))
    low = finite.amin(-1, keepdim=True)
    low = low.masked_fill(torch.isinf(low), 0)
    e = torch.exp(scores - low)
    total = e.sum(-1, keepdim=True)
    return e / total.masked_fill(total == 0, 1)
