# Wrong: head h starts at feature h, not at h * d_k.
import torch

def split_heads(x, num_heads):
    D = x.shape[-1]
    if D % num_heads:
        raise ValueError("uneven")
    d_k = D // num_heads
    return torch.stack([x[..., h:h + d_k] for h in range(num_heads)], dim=1)
