# under a mask the weights are cut after the softmax and divided by their sum
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
    m = _join(mask, causal, q, k)
    w = torch.softmax(q @ k.mT / q.shape[-1] ** .5, -1) * m
    w = w / (w.sum(-1, keepdim=True) + 1e-9)
    return F.dropout(w, dropout_p) @ v
