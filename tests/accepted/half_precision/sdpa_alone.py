import torch.nn.functional as F


def stable_attention(q, k, v, mask=None):
    allowed = None if mask is None else mask.bool()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
