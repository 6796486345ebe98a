import math

import torch


def gelu(x):
    return x * torch.special.erfc(-x / math.sqrt(2)) / 2
