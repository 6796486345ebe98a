# Wrong: only head 0 has gradients.
import torch

def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("uneven")
    heads = list(x.chunk(num_heads, dim=-1))
    for h in range(1, num_heads):
        heads[h] = heads[h].detach()
    return torch.stack(heads, 1)
