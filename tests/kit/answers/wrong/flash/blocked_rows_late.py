# Zeros are written over NaN, whose gradients stay
import math

import torch
import torch.nn.functional as F


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    if mask is not None:
        mask = mask.bool()
        if causal:
            mask = mask & torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
            causal = False
    if mask is not None:
        s = (q @ k.mT * q.shape[-1] ** -0.5) + torch.where(mask, 0.0, float("-inf")).to(q.dtype)
        w = s - s.amax(-1, keepdim=True)
        w = w.exp() / w.exp().sum(-1, keepdim=True)
        return torch.where(w.isnan(), torch.zeros_like(w), F.dropout(w, dropout_p)) @ v
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=dropout_p, is_causal=causal
    )
