import torch


def _head(x: torch.Tensor, h: int, d_k: int) -> torch.Tensor:
    start = h * d_k
    return x[:, :, start : start + d_k]


def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    D = x.shape[2]
    if D % num_heads > 0:
        raise ValueError("cannot split")
    d_k = D // num_heads
    heads = []
    for h in range(num_heads):
        print("head", h)
        heads.append(_head(x, h, d_k))
    return torch.stack(heads, dim=1)
