# Wrong: the mean instead of the maximum: -inf for rows with a blocked key.
import torch


def attention_weights(scores):
    top = scores.mean(-1, keepdim=True)
    e = torch.exp(scores - top)
    return e / e.sum(-1, keepdim=True).clamp(min=1e-9)
