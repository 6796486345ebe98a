import torch


def concat_heads(x):
    return torch.cat(x.unbind(dim=1), dim=-1)
