# Wrong: heads one after another along the tokens, [B, H*T, d_k].
import torch

def concat_heads(x):
    return torch.cat(x.unbind(1), dim=1)
