import torch


def concat_heads(x):
    return torch.cat(x.split(1, dim=1), dim=3).squeeze(1)
