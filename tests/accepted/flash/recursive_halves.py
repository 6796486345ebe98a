import math

import torch
import torch.nn.functional as F


def pieces(q, k, v, allowed, first, dropout_p):
    """(weighted values, sum of powers, top score) of these queries for these keys, halving both."""
    if q.shape[2] > 200:
        half = q.shape[2] // 2
        cut = (None, None) if allowed is None else (allowed[:, :, :half], allowed[:, :, half:])
        one = pieces(q[:, :, :half], k, v, cut[0], first, dropout_p)
        two = pieces(q[:, :, half:], k, v, cut[1], None if first is None else first + half, dropout_p)
        return tuple(torch.cat(pair, 2) for pair in zip(one, two))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    if first is not None:
        later = torch.arange(k.shape[2], device=q.device) > first + torch.arange(q.shape[2], device=q.device)[:, None]
        scores = scores.masked_fill(later, -torch.inf)
    top = scores.amax(-1, keepdim=True).clamp_min(torch.finfo(q.dtype).min).detach()
    powers = (scores - top).exp()
    return F.dropout(powers, dropout_p) @ v, powers.sum(-1, keepdim=True), top


def flash_attention(q, k, v, mask=None, causal=False, dropout_p=0.0):
    allowed = None
    if mask is not None:
        allowed = mask.bool().expand(*q.shape[:3], k.shape[2])
    mixed, total, _ = pieces(q, k, v, allowed, 0 if causal else None, dropout_p)
    return mixed / torch.where(total == 0, torch.ones_like(total), total)
