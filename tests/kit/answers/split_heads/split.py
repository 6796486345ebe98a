import torch

def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("uneven")
    return torch.stack(x.split(x.shape[-1] // num_heads, dim=-1), dim=1)
