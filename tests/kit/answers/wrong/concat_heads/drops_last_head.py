# Wrong: range(H - 1) leaves the last head out.
import torch

def concat_heads(x):
    H = x.shape[1]
    return torch.cat([x[:, h] for h in range(max(H - 1, 1))], dim=-1)
