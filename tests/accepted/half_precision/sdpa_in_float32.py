import torch
from torch.nn.functional import scaled_dot_product_attention


def stable_attention(q, k, v, mask=None):
    dtype, wide = q.dtype, torch.promote_types(q.dtype, torch.float32)
    q, k, v = (x.to(wide) for x in (q, k, v))
    bias, empty = None, None
    if mask is not None:
        allowed = (mask != 0).expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        empty = ~allowed.any(-1, keepdim=True)
        bias = torch.zeros_like(allowed, dtype=wide).masked_fill(~allowed & ~empty, float("-inf"))
    out = scaled_dot_product_attention(q, k, v, attn_mask=bias)
    return (out if empty is None else torch.where(empty, torch.zeros_like(out), out)).to(dtype)
