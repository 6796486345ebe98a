import torch


class HeadsError(ValueError):
    pass


def split_heads(x, num_heads):
    D = x.shape[-1]
    if D % num_heads != 0:
        raise HeadsError(f"{D=} {num_heads=}")
    pieces = torch.split(x, D // num_heads, dim=-1)
    return torch.cat([piece.unsqueeze(1) for piece in pieces], dim=1)
