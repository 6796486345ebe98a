# Wrong: heads before the batch, [H, B, T, d_k].
import torch

def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("uneven")
    return torch.stack(x.chunk(num_heads, dim=-1))
