import torch


def attention_weights(scores):
    lowest = torch.finfo(scores.dtype).min
    top = scores.detach().amax(-1, keepdim=True).clamp(min=lowest)
    e = (scores - top).exp()
    return e / e.sum(-1, keepdim=True).clamp(min=1e-6)
