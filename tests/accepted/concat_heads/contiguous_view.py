import torch
from torch import Tensor


def concat_heads(x: Tensor) -> Tensor:
    batch, heads, tokens, width = x.size()
    together = torch.transpose(x, 1, 2).contiguous()  # [B, T, H, d_k] – Köpfe nebeneinander
    return together.view(batch, tokens, heads * width)
