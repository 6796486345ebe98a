import torch


def split_heads(x, num_heads):
    if x.size(-1) % num_heads:
        raise ValueError
    return torch.stack(x.chunk(num_heads, dim=-1), 1)
