# Wrong: one maximum for all rows: rows far below it vanish.
import torch


def attention_weights(scores):
    top = scores.max()
    top = top if torch.isfinite(top) else torch.zeros_like(top)
    e = torch.exp(scores - top)
    total = e.sum(-1, keepdim=True)
    return e / total.masked_fill(total == 0, 1)
