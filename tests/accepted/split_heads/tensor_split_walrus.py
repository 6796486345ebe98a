import torch


def split_heads(x, num_heads):
    if (rest := x.shape[-1] % num_heads) != 0:
        raise ValueError(f"{rest} features are left over")
    return torch.stack([*torch.tensor_split(x, num_heads, dim=2)], dim=-3)
