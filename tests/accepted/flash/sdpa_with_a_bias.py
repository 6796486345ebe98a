import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    if mask is None:
        return sdpa(q, k, v, dropout_p=dropout_p, is_causal=causal)
    allowed = torch.logical_and(mask, torch.tensor(True, device=mask.device))
    allowed = allowed.expand(*q.shape[:-1], k.shape[-2])
    if causal:
        allowed = torch.tril(allowed)
    some = allowed.any(dim=-1, keepdim=True)
    bias = torch.zeros_like(allowed, dtype=q.dtype)
    bias = bias.masked_fill(~allowed & some, -torch.inf)
    out = sdpa(q, k, v, attn_mask=bias, dropout_p=dropout_p)
    return torch.where(some, out, torch.zeros_like(out))
