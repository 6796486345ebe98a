import torch


def gelu(x):
    return x * torch.special.ndtr(x.float()).to(x.dtype)
