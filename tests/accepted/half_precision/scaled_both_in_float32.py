import functools

import torch


def in_float32(attend):
    """Calls `attend` with wider inputs and brings its result back."""

    @functools.wraps(attend)
    def wrapped(q, k, v, mask=None):
        wide = torch.promote_types(q.dtype, torch.float32)
        return attend(q.to(wide), k.to(wide), v.to(wide), mask).to(q.dtype)

    return wrapped


@in_float32
def stable_attention(q, k, v, mask):
    root = q.shape[-1] ** -0.25
    scores = (q * root) @ (k * root).mT
    if mask is not None:
        scores = scores + torch.log((mask != 0).to(scores.dtype))
        blocked = scores.isneginf().all(-1, keepdim=True)
        scores = torch.where(blocked, torch.zeros_like(scores), scores)
        return torch.where(blocked, torch.zeros_like(q), scores.softmax(-1) @ v)
    return scores.softmax(-1) @ v
