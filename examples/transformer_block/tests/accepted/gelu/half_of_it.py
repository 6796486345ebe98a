import torch


def gelu(x):
    return 0.5 * x * (1.0 + torch.erf(x * 2**-0.5))
