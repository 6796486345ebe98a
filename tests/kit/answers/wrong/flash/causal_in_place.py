# What causal blocks is written into a mask of floating-point numbers
import math

import torch
import torch.nn.functional as F


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    if mask is not None:
        if causal and mask.is_floating_point() and mask.shape[-2] > 1:
            mask.tril_()
        mask = mask.bool()
        if causal:
            mask = mask & torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
            causal = False
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=dropout_p, is_causal=causal
    )
