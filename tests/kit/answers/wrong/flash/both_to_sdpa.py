# SDPA is given the mask and is_causal, which its kernel with dropout refuses
import torch.nn.functional as F


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    if mask is not None:
        mask = mask.bool()
        if causal:
            T = q.shape[-2]
            mask = mask & mask.new_ones(T, T).tril()
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=dropout_p, is_causal=causal
    )
