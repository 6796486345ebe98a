# Any mask is made float and added
import math

import torch
import torch.nn.functional as F


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    if mask is not None:
        if causal:
            mask = mask.bool() & torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
            causal = False
        mask = mask.to(q.dtype)
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=dropout_p, is_causal=causal
    )
