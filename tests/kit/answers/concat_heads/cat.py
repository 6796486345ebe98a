import torch

def concat_heads(x):
    return torch.cat(x.unbind(1), dim=-1)
