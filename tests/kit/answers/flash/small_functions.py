import torch
import torch.nn.functional as F
def _join(mask, causal, q, k):
    if mask is not None: mask = mask.bool()
    if causal:
        c = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
        mask = c if mask is None else mask & c
    return mask
def _full(q, k, v, mask, p=0.0):
    s = q @ k.mT / q.shape[-1] ** .5
    if mask is not None: s = s.masked_fill(~mask, -torch.inf)
    return F.dropout(torch._safe_softmax(s, -1), p) @ v


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    if mask is None: return F.scaled_dot_product_attention(q, k, v, is_causal=causal, dropout_p=dropout_p)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=_join(mask, causal, q, k), dropout_p=dropout_p)
