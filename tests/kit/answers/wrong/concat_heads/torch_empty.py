# Wrong: fills a float32 tensor whatever the input's dtype.
import torch

def concat_heads(x):
    B, H, T, d_k = x.shape
    out = torch.empty(B, T, H * d_k)
    for h in range(H):
        out[..., h * d_k:(h + 1) * d_k] = x[:, h]
    return out
