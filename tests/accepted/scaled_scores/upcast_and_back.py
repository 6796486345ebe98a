import torch


def scaled_scores(q, k):
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).transpose(-1, -2)
    scores /= q.shape[-1] ** 0.5
    return scores.to(q.dtype)
